package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/sqlstore"
)

// What flags of several commands may be.

func validListen(address string) error { return validAddress("listen", address) }

func validAddress(name, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--%s %q: want HOST:PORT", name, address)
	}
	return nil
}

func validDatabase(u string) error {
	if err := sqlstore.ValidURL(u); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

func validRedis(u string) error {
	if u == "" {
		return nil
	}
	if _, err := redis.ParseURL(u); err != nil {
		return errors.New("--redis: want redis://USER:PASSWORD@HOST:6379/0")
	}
	return nil
}
