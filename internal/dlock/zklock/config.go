package zklock

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Config is the configuration of a [Locker]. How long a key stays locked
// after its holder has died is the timeout of the session.
type Config struct {
	// MaxHold ends a lease that long after it was granted. 0 means no limit.
	MaxHold time.Duration

	// Prefix is the node below which the keys are, seen from the root of the
	// session. Empty means "/locks".
	Prefix string
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.Prefix = cmp.Or(cfg.Prefix, "/locks")
	if !strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/") {
		return fmt.Errorf("zklock: prefix %q does not begin, or ends, with a slash", cfg.Prefix)
	}
	return nil
}
