package redisrw

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is the configuration of an [RW].
type Config struct {
	// TTL is how long Redis keeps a grant that is not renewed. So long does a dead reader block writers, and a dead
	// writer everybody. 0 means 30 s.
	TTL time.Duration

	// Timeout bounds one round trip, and with it how long an attempt continues after
	// its context was cancelled. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// MaxHold ends a lease that long after it was granted. 0 means no limit.
	MaxHold time.Duration

	// NoReentry refuses to acquire a key again with the context of a lease that
	// holds it.
	NoReentry bool

	// Prefix begins every key and channel in Redis. Empty means "shop:rw:".
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
