package redislock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is the configuration of a [Locker].
type Config struct {
	// TTL is how long Redis keeps a grant that is not renewed: the time that a key
	// stays locked after its holder has died. A live holder renews every TTL/3.
	// 0 means 30 s.
	TTL time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not. Redis is not notified: the key is free when
	// the TTL of the last renewal is over. 0 means no limit.
	MaxHold time.Duration

	// Timeout bounds one round trip. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// Prefix begins every key in Redis. Empty means "shop:lock:".
	Prefix string
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 2*time.Second), cfg.TTL/3)
	cfg.Prefix = cmp.Or(cfg.Prefix, defaultPrefix)
	var errs []error
	if cfg.TTL < time.Millisecond {
		errs = append(errs, fmt.Errorf("TTL %v is less than a millisecond", cfg.TTL))
	}
	if strings.ContainsAny(cfg.Prefix, "{}") {
		errs = append(errs, fmt.Errorf("prefix %q has a brace", cfg.Prefix))
	}
	return errors.Join(errs...)
}
