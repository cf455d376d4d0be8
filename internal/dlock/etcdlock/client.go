package etcdlock

import (
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"example.com/shop/internal/platform/storeurl"
)

const (
	// pingEvery is how often an idle connection is tried. A member refuses clients
	// that ask more often than every 5 s.
	pingEvery = 10 * time.Second
	// pingTimeout is how long an answer to that may take.
	pingTimeout = 3 * time.Second
)

// NewClient returns a client for locks on the members at address, which are tried in turn:
//
//	HOST:PORT,HOST:PORT                            without TLS
//	https://USER:PASSWORD@HOST:PORT,HOST:PORT      with TLS, of which [storeurl.TLS] has the parameters
//
// It connects when it is first used, but with a user at once, for three seconds at most. It logs nothing, and no error
// has a password.
func NewClient(address string, options ...grpc.DialOption) (*clientv3.Client, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	cfg := clientv3.Config{
		DialTimeout: pingTimeout, DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingTimeout,
		Logger: zap.NewNop(),
		DialOptions: append([]grpc.DialOption{grpc.WithContextDialer(dial), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: pingTimeout,
		})}, options...),
	}
	cfg.Username, cfg.Password, cfg.TLS = u.User, u.Password, u.TLS
	for _, host := range u.Hosts {
		if u.TLS != nil {
			host = "https://" + host
		}
		cfg.Endpoints = append(cfg.Endpoints, host)
	}
	cli, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcdlock: %w: check the user and the password, that the server runs, and whether it demands TLS", err)
	}
	return cli, nil
}

// ValidAddress returns what is wrong with the form of an address of [NewClient]. It connects to nothing.
func ValidAddress(address string) error {
	_, err := parse(address)
	return err
}

func parse(address string) (storeurl.URL, error) {
	u, err := storeurl.Parse(address, "")
	switch {
	case err != nil && !errors.Is(err, storeurl.ErrForm):
		return u, err
	case err != nil || u.Scheme != "" && u.Scheme != "https" || u.Path != "" || len(u.Params) > 0:
		return u, errors.New("want HOST:2379,... or https://USER:PASSWORD@HOST:2379,... for TLS")
	}
	return u, nil
}
