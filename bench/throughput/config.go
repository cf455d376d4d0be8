package throughput

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/stock"
)

// Config says what to measure, and where.
type Config struct {
	Strategies []string // default: all that Stores allow
	Stores     []string // of those that ValidStores names; default mariadb and redis
	Peers      []Peer   // variants alongside those of the service

	Executable  string // that serves
	Instances   int    // default 3
	Connections int    // of buyers, over all instances; default 96
	SKUs        int    // that are sold at the same time; default 1
	Own         bool   // each buyer buys one SKU only, the n-th buyer the n-th; otherwise all buy all in turn
	Catalog     int    // SKUs that are on sale alongside those, and that nobody wants
	Open        int    // orders that are open before the first turn
	Keys        bool   // each order has an Idempotency-Key
	Rounds      int    // default 3
	WarmUp      time.Duration
	Duration    time.Duration // of a turn, alongside its warm-up; default 5 s
	Rate        int           // orders per second that arrive by the clock; 0: a closed loop
	NoLimits    bool          // the parts are not measured alone, and the report has no rows of them

	Args []string  // for the instances, alongside those of the stores
	Log  io.Writer // is notified how it goes
}

// Peer is a variant whose orders are taken by another program, on the same stores. It is
// started with the arguments of shop serve, speaks its API, and sells by Strategy.
type Peer struct {
	Name, Executable, Strategy string
	Args                       []string // alongside those
}

var validStores = []string{"sqlite", "mariadb", "postgresql", "redis", "redlock", "zookeeper", "etcd"}

// withDefaults returns c with zero fields set to their defaults.
func (c Config) withDefaults() Config {
	if len(c.Stores) == 0 {
		c.Stores = []string{"mariadb", "redis"}
	}
	c.Instances = cmp.Or(c.Instances, 3)
	c.Connections = cmp.Or(c.Connections, 96)
	c.SKUs = cmp.Or(c.SKUs, 1)
	c.Rounds = cmp.Or(c.Rounds, 3)
	c.Duration = cmp.Or(c.Duration, 5*time.Second)
	c.WarmUp = cmp.Or(c.WarmUp, c.Duration/4)
	return c
}

// Validate reports everything that is wrong with c.
func (c Config) Validate() error {
	c = c.withDefaults()
	var bad []error
	names := stock.NewStrategies(stock.Lockers{}).Names()
	for i, s := range c.Strategies {
		if !slices.Contains(names, s) {
			bad = append(bad, fmt.Errorf("--strategies: no strategy %q; there are %s", s, strings.Join(names, ", ")))
		} else if slices.Contains(c.Strategies[:i], s) {
			bad = append(bad, fmt.Errorf("--strategies: %q is named twice", s))
		}
	}
	for _, s := range c.Stores {
		if !slices.Contains(validStores, s) {
			bad = append(bad, fmt.Errorf("--stores: no store %q; there are %s", s, strings.Join(validStores, ", ")))
		}
	}
	databases := 0
	for _, s := range []string{"sqlite", "mariadb", "postgresql"} {
		if slices.Contains(c.Stores, s) {
			databases++
		}
	}
	if databases != 1 {
		bad = append(bad, errors.New("--stores: want one database, sqlite, mariadb or postgresql"))
	}
	if !slices.Contains(c.Stores, "redis") {
		bad = append(bad, errors.New("--stores: redis is missing; the service needs it for more than locks"))
	}
	bound := func(flag string, value, least, most int) {
		if value < least || value > most {
			bad = append(bad, fmt.Errorf("--%s %d: want %d to %d", flag, value, least, most))
		}
	}
	bound("instances", c.Instances, 1, 32)
	bound("connections", c.Connections, c.Instances, 10_000)
	bound("skus", c.SKUs, 1, 1_000_000)
	bound("catalog", c.Catalog, 0, 1_000_000)
	bound("open", c.Open, 0, 10_000_000)
	bound("rounds", c.Rounds, 1, 100)
	bound("rate", c.Rate, 0, 1_000_000)
	if c.Duration < 100*time.Millisecond || c.Duration > 10*time.Minute || c.WarmUp < 0 || c.WarmUp > time.Minute {
		bad = append(bad, fmt.Errorf("--duration %v after --warmup %v: want 100ms to 10m after at most 1m", c.Duration, c.WarmUp))
	}
	return errors.Join(bad...)
}
