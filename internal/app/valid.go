package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/sqldb"
)

// validAddress returns what is wrong with the address of a listener.
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

// validAdvertise validates the address for other instances; it may be empty.
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

// validAdmin allows loopback addresses only: metrics and, with --auth none, all operations are open to every client that can connect.
func validAdmin(address string) error {
	if address == "" {
		return nil
	}
	if err := validAddress("admin-listen", address); err != nil {
		return err
	}
	if !IsLoopback(address) {
		return fmt.Errorf("--admin-listen %q: it is for this machine only: want 127.0.0.1:PORT, [::1]:PORT or localhost:PORT", address)
	}
	return nil
}

// validMetrics allows any address: metrics name no SKU, order or customer.
func validMetrics(address string) error {
	if address == "" {
		return nil
	}
	return validAddress("metrics-listen", address)
}

func validOrderTTL(d time.Duration) error {
	if d < time.Second || d > 30*24*time.Hour {
		return fmt.Errorf("order-ttl %s: want 1s to 720h", d)
	}
	return nil
}

// ValidDatabase returns what is wrong with the form of --database.
func ValidDatabase(u string) error {
	if err := sqldb.ValidURL(u); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// ValidRedis returns what is wrong with the form of --redis. It connects to nothing.
func ValidRedis(u string) error {
	return optional("redis", u, func(u string) error {
		client, err := redisclient.New(u)
		if err != nil {
			return err
		}
		return client.Close()
	})
}

// optional returns what check finds wrong with the value of a flag, unless it is empty.
func optional(flag, value string, check func(string) error) error {
	if value == "" {
		return nil
	}
	if err := check(value); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

func validRedlock(urls string) error {
	if urls == "" {
		return nil
	}
	seen := make(map[string]bool)
	for u := range strings.SplitSeq(urls, ",") {
		base, _, _ := strings.Cut(u, "?")
		o, err := redis.ParseURL(base)
		if err != nil {
			return errors.New("--redlock: want URLs like redis://USER:PASSWORD@HOST:6379/0, separated by commas")
		}
		client, err := redisclient.New(u)
		if err != nil {
			return fmt.Errorf("--redlock: %w", err)
		}
		_ = client.Close()
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

// validZooKeeperAuth refuses a user without servers, or in another form. It never names the password.
func validZooKeeperAuth(auth, servers string) error {
	user, password, _ := strings.Cut(auth, ":")
	switch {
	case auth == "":
		return nil
	case user == "" || password == "":
		return errors.New("--zookeeper-auth: want USER:PASSWORD")
	case servers == "":
		return errors.New("--zookeeper-auth is for the servers of --zookeeper: give both")
	}
	return nil
}

// IsLoopback reports whether only this machine can connect to address.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
