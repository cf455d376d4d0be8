package redisx

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// New returns a client that [Check] accepts, for
//
//	redis://USER:PASSWORD@HOST:PORT/DB                           one server
//	redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER    the master of that name, by its sentinels
//	redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT            a cluster, by some of its nodes
//
// With rediss in place of redis it uses TLS. It connects when it is first used.
// Give locks a client of their own, so that a pool that others exhaust does not
// stop renewals.
func New(address string) (redis.UniversalClient, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	kind, group, _ := strings.Cut(scheme, "+")
	switch group {
	case "":
		opts, err := redis.ParseURL(address)
		if err != nil {
			return nil, fmt.Errorf("redisx: %w", err)
		}
		opts.MaxRetries = -1
		opts.ContextTimeoutEnabled = true
		opts.DialerRetries = 1 // a refused connection is an answer, and the callers here try again themselves
		opts.MaintNotificationsConfig = disabled()
		return redis.NewClient(opts), nil
	case "sentinel", "cluster":
	default:
		return nil, fmt.Errorf("redisx: unknown scheme %q", scheme)
	}
	hosts, u, err := parseGroup(kind, rest)
	if err != nil {
		return nil, fmt.Errorf("redisx: %w", err)
	}
	password, _ := u.User.Password()
	if group == "cluster" {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: hosts, Username: u.User.Username(), Password: password, TLSConfig: secure(kind),
			MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1, MaintNotificationsConfig: disabled(),
			ClusterStateReloadInterval: time.Second, // a refused connection does not make the client ask for the new master
		}), nil
	}
	master := strings.Trim(u.Path, "/")
	if master == "" {
		return nil, errors.New("redisx: the address does not name the master")
	}
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: master, SentinelAddrs: hosts, Username: u.User.Username(), Password: password, TLSConfig: secure(kind),
		MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
	}), nil
}

func disabled() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func secure(kind string) *tls.Config {
	if kind == "rediss" {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

// parseGroup splits the hosts, which an URL has one of, from what is like an URL.
func parseGroup(kind, rest string) ([]string, *url.URL, error) {
	if kind != "redis" && kind != "rediss" {
		return nil, nil, fmt.Errorf("unknown scheme %q", kind)
	}
	authority, path, _ := strings.Cut(rest, "/")
	user, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	u, err := url.Parse(kind + "://" + user + "group/" + path)
	if err != nil {
		return nil, nil, err
	}
	list := strings.Split(hosts, ",")
	for _, host := range list {
		if _, _, err := net.SplitHostPort(host); err != nil {
			return nil, nil, err
		}
	}
	return slices.Clip(list), u, nil
}

// Check refuses a client that repeats commands by itself or ignores deadlines. It reads the options of the clients it
// knows; a wrapper answers for itself.
func Check(rdb redis.UniversalClient) error {
	var retries int
	var deadlines bool
	switch c := rdb.(type) {
	case *redis.Client:
		retries, deadlines = c.Options().MaxRetries, c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		retries, deadlines = c.Options().MaxRetries, c.Options().ContextTimeoutEnabled
	default:
		return nil
	}
	var errs []error
	if retries > 0 {
		errs = append(errs, errors.New("the client repeats commands by itself: set MaxRetries to -1"))
	}
	if !deadlines {
		errs = append(errs, errors.New("the client ignores the deadlines of contexts: set ContextTimeoutEnabled"))
	}
	return errors.Join(errs...)
}
