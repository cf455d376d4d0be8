package rediscluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/redisx"
)

// Config is the configuration of a [Cluster].
type Config struct {
	// TTL is how long an instance that has died is listed. A live one renews its entry
	// every TTL/3. 0 means 5 s.
	TTL time.Duration

	// Poll is the time between two looks of one sequence, and so how late a change may be
	// seen. 0 means 500 ms; it is never more than TTL/3.
	Poll time.Duration

	// Timeout bounds one round trip. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// Prefix begins every key in Redis. Empty means "shop:cluster:".
	Prefix string

	// OnError receives entries that cannot be read, once each, and of what is tried
	// again in the background. It must not block. Default: none.
	OnError func(error)
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.TTL = cmp.Or(cfg.TTL, 5*time.Second)
	cfg.Poll = min(cmp.Or(cfg.Poll, 500*time.Millisecond), cfg.TTL/3)
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 2*time.Second), cfg.TTL/3)
	cfg.Prefix = cmp.Or(cfg.Prefix, defaultPrefix)
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	var errs []error
	if cfg.TTL < 10*time.Millisecond || cfg.Poll < time.Millisecond {
		errs = append(errs, fmt.Errorf("TTL %v and poll %v are too short", cfg.TTL, cfg.Poll))
	}
	if strings.ContainsAny(cfg.Prefix, "{}") {
		errs = append(errs, fmt.Errorf("prefix %q has a brace", cfg.Prefix))
	}
	return errors.Join(errs...)
}

// Cluster is what an instance has of the others in Redis. It is safe for concurrent
// use, and has no goroutines of its own.
type Cluster struct {
	rdb    redis.UniversalClient
	cfg    Config
	strays cluster.Strays
}

var (
	_ cluster.Membership = (*Cluster)(nil)
	_ cluster.Registry   = (*Cluster)(nil)
)

// New returns a Cluster on rdb, which it does not close. It refuses clients that
// [redisx.Check] refuses.
func New(rdb redis.UniversalClient, cfg Config) (*Cluster, error) {
	err := errors.Join(cfg.validate(), redisx.Check(rdb))
	if err != nil {
		return nil, fmt.Errorf("rediscluster: %w", err)
	}
	return &Cluster{rdb: rdb, cfg: cfg}, nil
}
