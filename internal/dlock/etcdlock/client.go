package etcdlock

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	// pingEvery is how often an idle connection is tried. A member refuses clients
	// that ask more often than every 5 s.
	pingEvery = 10 * time.Second
	// pingTimeout is how long an answer to that may take.
	pingTimeout = 3 * time.Second
)

// NewClient returns a client for locks on the members at addresses, HOST:PORT,...,
// which are tried in turn; USER:PASSWORD@ may precede the first. It connects
// when it is first used, but with a user at once, for three seconds at most. It logs nothing.
func NewClient(addresses string, options ...grpc.DialOption) (*clientv3.Client, error) {
	cfg := clientv3.Config{
		DialTimeout: pingTimeout, DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingTimeout,
		Logger: zap.NewNop(),
		DialOptions: append([]grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: pingTimeout,
		})}, options...),
	}
	if at := strings.LastIndexByte(addresses, '@'); at >= 0 {
		u, err := url.Parse("etcd://" + addresses[:at+1] + "members")
		if err != nil {
			return nil, errors.New("etcdlock: the user before the addresses is malformed")
		}
		cfg.Username = u.User.Username()
		cfg.Password, _ = u.User.Password()
		addresses = addresses[at+1:]
	}
	for address := range strings.SplitSeq(addresses, ",") {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("etcdlock: %w", err)
		}
		cfg.Endpoints = append(cfg.Endpoints, address)
	}
	cli, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcdlock: %w", err)
	}
	return cli, nil
}
