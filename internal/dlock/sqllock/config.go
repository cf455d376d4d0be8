package sqllock

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Config is the configuration of a [Locker].
type Config struct {
	// TTL is how long the database keeps a grant that is not renewed: the time that a
	// key stays locked after its holder has died. A live holder renews every TTL/3.
	// 0 means 30 s.
	TTL time.Duration

	// MaxTTL is the longest TTL of all Lockers of the table. A row that ends later than 2 MaxTTL from now counts as free:
	// the clock of the database was set back. 0 means that such a row blocks its key until its end.
	MaxTTL time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not. The
	// database is not notified: the key is free when the TTL of the last renewal is over.
	// 0 means no limit.
	MaxHold time.Duration

	// Timeout bounds one statement, and the wait for a connection before it. 0 means
	// 2 s; it is never more than TTL/3.
	Timeout time.Duration
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 2*time.Second), cfg.TTL/3)
	if cfg.TTL < 10*time.Millisecond {
		return fmt.Errorf("TTL %v is less than 10 ms", cfg.TTL) // SQLite's clock has milliseconds
	}
	if cfg.MaxTTL > 0 && cfg.MaxTTL < cfg.TTL {
		return fmt.Errorf("MaxTTL %v is less than the TTL %v", cfg.MaxTTL, cfg.TTL)
	}
	return nil
}

// far is how far in the future the row of a lease may end, in microseconds.
func (cfg *Config) far() int64 {
	if cfg.MaxTTL > 0 {
		return 2 * cfg.MaxTTL.Microseconds()
	}
	return math.MaxInt64 / 2
}
