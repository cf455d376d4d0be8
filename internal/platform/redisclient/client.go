// Package redisclient opens clients of Redis by URL.
//
// By default, a client of go-redis repeats a command whose reply was lost three times. The client also waits for a reply as
// long as its own timeouts allow, and ignores its caller's context. [New] returns a client that does neither, and that
// leaves a server which says that it does not serve.
package redisclient

import (
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/platform/storeurl"
)

// errAddress does not repeat the address, which may have a password.
var errAddress = errors.New("want redis://USER:PASSWORD@HOST:6379/0, redis+sentinel://HOST:26379,.../MASTER or redis+cluster://HOST:6379,HOST:6379, with rediss for TLS")

// New returns a client that [redisx.Check] accepts, for
//
//	redis://USER:PASSWORD@HOST:PORT/DB                           one server
//	redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER    the master of that name, by its sentinels
//	redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT            a cluster, by some of its nodes
//
// With rediss in place of redis it uses TLS, of which [storeurl.TLS] has the parameters. The sentinels may have a user
// and a password of their own, the parameters sentinel-user and sentinel-password. New connects to nothing, and no error
// has a password. Give locks a client of their own, so that a pool that others exhaust does not stop renewals.
func New(address string) (redis.UniversalClient, error) {
	scheme, _, _ := strings.Cut(address, "://")
	kind, group, _ := strings.Cut(scheme, "+")
	if group == "" {
		return one(kind, address)
	}
	u, err := storeurl.Parse(address, "")
	if errors.Is(err, storeurl.ErrForm) || kind != "redis" && kind != "rediss" {
		return nil, errAddress
	} else if err != nil {
		return nil, err
	}
	user, password := u.Params.Get("sentinel-user"), u.Params.Get("sentinel-password")
	u.Params.Del("sentinel-user")
	u.Params.Del("sentinel-password")
	switch own := user + password; {
	case len(u.Params) > 0:
	case group == "cluster" && u.Path == "" && own == "":
		cluster := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: u.Hosts, Username: u.User, Password: u.Password, TLSConfig: u.TLS,
			MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1, MaintNotificationsConfig: disabled(),
			ClusterStateReloadInterval: time.Second, // a refused connection does not make the client ask for the new master
		})
		cluster.OnNewNode(func(node *redis.Client) { replacingConnections(node) })
		return cluster, nil
	case group == "sentinel" && u.Path != "":
		return replacingConnections(redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: u.Path, SentinelAddrs: u.Hosts, SentinelUsername: user, SentinelPassword: password,
			Username: u.User, Password: u.Password, TLSConfig: u.TLS,
			MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
		})), nil
	}
	return nil, errAddress
}

// Members returns a client of each server that the URL of a group names: each sentinel, or each node of a cluster. The URL of
// one server has none. New must accept the URL.
func Members(address string) (all []*redis.Client) {
	u, err := storeurl.Parse(address, "")
	_, group, ok := strings.Cut(u.Scheme, "+")
	if err != nil || !ok {
		return nil
	}
	user, password := u.User, u.Password
	if group == "sentinel" {
		user, password = u.Params.Get("sentinel-user"), u.Params.Get("sentinel-password")
	}
	for _, host := range u.Hosts {
		all = append(all, redis.NewClient(&redis.Options{
			Addr: host, Username: user, Password: password, TLSConfig: u.TLS,
			MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1, MaintNotificationsConfig: disabled(),
		}))
	}
	return all
}

// one returns a client of one server.
func one(kind, address string) (redis.UniversalClient, error) {
	base, query, _ := strings.Cut(address, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, errAddress
	}
	secure, err := storeurl.TLS(kind, params)
	if err != nil {
		return nil, err
	}
	if params.Has("skip_verify") { // of go-redis
		return nil, errors.New("skip_verify: the server is always checked: give its authority by tls-ca=FILE")
	}
	opts, err := redis.ParseURL(base + "?" + params.Encode())
	if err != nil {
		return nil, errAddress
	}
	opts.TLSConfig = secure
	opts.MaxRetries = -1
	opts.ContextTimeoutEnabled = true
	opts.DialerRetries = 1 // a refused connection is an answer, and the callers here try again themselves
	opts.MaintNotificationsConfig = disabled()
	return replacingConnections(redis.NewClient(opts)), nil
}

func replacingConnections(rdb *redis.Client) *redis.Client {
	rdb.AddHook(replacing{new(atomic.Int64)})
	return rdb
}

func disabled() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
