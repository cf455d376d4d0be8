package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is the configuration of a [Locker]. All clients of a lock need the same TTL
// and Settle.
type Config struct {
	// TTL is how long a server keeps a grant that is not renewed: the time that a key
	// stays locked after its holder has died. A live holder renews every TTL/3.
	// 0 means 30 s.
	TTL time.Duration

	// Settle is how long a server without data grants nothing: when it is first used, and when it has lost its data.
	// It may have lost grants that are still considered valid. 0 means TTL. Negative means that it grants at once:
	// then a lock can have two holders for a while after a server was restarted empty.
	Settle time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not. The servers
	// are not notified: the key is free when the TTL of the last renewal is over.
	// 0 means no limit.
	MaxHold time.Duration

	// Timeout bounds one call to one server. 0 means 500 ms; it is never more than
	// TTL/6.
	Timeout time.Duration

	// Prefix begins every key in Redis. Empty means "shop:redlock:".
	Prefix string
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	cfg.Settle = max(0, cmp.Or(cfg.Settle, cfg.TTL))
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 500*time.Millisecond), cfg.TTL/6)
	cfg.Prefix = cmp.Or(cfg.Prefix, defaultPrefix)
	var errs []error
	if cfg.TTL < 10*time.Millisecond {
		errs = append(errs, fmt.Errorf("TTL %v is less than 10 ms", cfg.TTL))
	}
	if strings.ContainsAny(cfg.Prefix, "{}") {
		errs = append(errs, fmt.Errorf("prefix %q has a brace", cfg.Prefix))
	}
	return errors.Join(errs...)
}
