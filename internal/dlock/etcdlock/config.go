package etcdlock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config is the configuration of a [Locker].
type Config struct {
	// TTL is how long etcd keeps a grant that is not renewed: the time that a key
	// stays locked after its holder has died. A live holder renews every TTL/3. It is
	// in whole seconds, rounded up, and etcd may keep a grant for longer: for one and
	// a half election timeouts at least. 0 means 30 s.
	TTL time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not. 0 means no
	// limit.
	MaxHold time.Duration

	// Timeout bounds one round trip. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// Prefix begins every key in etcd, and ends with a slash. Empty means
	// "shop/locks/".
	Prefix string
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	if rest := cfg.TTL % time.Second; rest > 0 {
		cfg.TTL += time.Second - rest
	}
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 2*time.Second), cfg.TTL/3)
	cfg.Prefix = cmp.Or(cfg.Prefix, "shop/locks/")
	var errs []error
	if cfg.TTL < time.Second {
		errs = append(errs, fmt.Errorf("TTL %v is less than a second", cfg.TTL))
	}
	if !strings.HasSuffix(cfg.Prefix, "/") {
		errs = append(errs, fmt.Errorf("prefix %q does not end with a slash", cfg.Prefix))
	}
	return errors.Join(errs...)
}
