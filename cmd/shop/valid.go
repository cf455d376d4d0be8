package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/redisclient"
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

// validAdvertise looks at an address that others are told; an empty one is none.
func validAdvertise(address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		err = errors.Join(validAddress("advertise", address), (cluster.Member{Name: "-", Address: address}).Validate())
	}
	if err != nil || host == "" || net.ParseIP(host).IsUnspecified() || strings.ContainsAny(host, " /@?#") || strings.Trim(port, "0") == "" {
		return fmt.Errorf("--advertise %q: want the HOST:PORT at which others reach this instance", address)
	}
	return nil
}

func validOrderTTL(d time.Duration) error {
	if d < time.Second || d > 30*24*time.Hour {
		return fmt.Errorf("order-ttl %s: want 1s to 720h", d)
	}
	return nil
}

func validDatabase(u string) error {
	if err := sqlstore.ValidURL(u); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// validRedis looks at the form of an address; nothing is asked whether somebody is there.
func validRedis(u string) error {
	if u == "" {
		return nil
	}
	client, err := redisclient.New(u)
	if err != nil {
		return errors.New("--redis: want redis://USER:PASSWORD@HOST:6379/0, redis+sentinel://HOST:26379,.../MASTER or redis+cluster://HOST:6379,HOST:6379")
	}
	return client.Close()
}

func validRedlock(urls string) error {
	if urls == "" {
		return nil
	}
	seen := make(map[string]bool)
	for u := range strings.SplitSeq(urls, ",") {
		o, err := redis.ParseURL(u)
		if err != nil {
			return errors.New("--redlock: want URLs like redis://USER:PASSWORD@HOST:6379/0, separated by commas")
		}
		if seen[o.Addr] {
			return fmt.Errorf("--redlock: %s is named twice; a server has one vote", o.Addr)
		}
		seen[o.Addr] = true
	}
	if len(seen) < 3 || len(seen)%2 == 0 {
		return fmt.Errorf("--redlock: want an odd number of servers, three or more, not %d", len(seen))
	}
	return nil
}

// validServers looks at a list of HOST:PORT.
func validServers(flag, addresses string) error {
	if addresses == "" {
		return nil
	}
	for a := range strings.SplitSeq(addresses, ",") {
		host, port, err := net.SplitHostPort(a)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || n == 0 {
			return fmt.Errorf("--%s %q: want HOST:PORT, separated by commas", flag, addresses)
		}
	}
	return nil
}
