package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/stock"
)

// Strategies that are expected to oversell.
var baselines = []string{"naive", "local"}

// A strategy that is exact as long as nobody outlives a lease.
const unfenced = "redis-unfenced"

const customers = 32 // who ask at the same time

// Config has what to sell, where, and how to report it.
type Config struct {
	Strategies []string // default: all whose stores there are
	Stock      int      // units per variant; default 100
	Attempts   int      // buyers' attempts per variant; default 8 times the stock
	Instances  int      // default 3

	// Redis and Database name real stores. Empty ones are embedded: a Redis in
	// this process and an SQLite file in a temporary folder.
	Redis    string
	Database string

	// Redlock, ZooKeeper and Etcd name lock services as the instances are notified of them.
	// The strategies of empty ones are left out.
	Redlock, ZooKeeper, Etcd string

	// All starts a server of each kind that is installed and not named above.
	All bool

	// URL is the base URL of a service that runs already, with Database
	// behind it. Empty: instances are started from Executable.
	URL        string
	Executable string

	// MaxWait is how long after its due time an order may expire before it counts as lost; default 2 min. The
	// slowest repair takes 30 s: that of timers which a killed instance had claimed.
	MaxWait time.Duration

	Keep bool // leave the instances up until the context ends
	JSON bool // print nothing but the report, as JSON

	Out      io.Writer
	Terminal bool // Out is a terminal: show progress bars
}

// withDefaults returns c with zero fields set to their defaults.
func (c Config) withDefaults() Config {
	c.Stock = cmp.Or(c.Stock, 100)
	c.Attempts = cmp.Or(c.Attempts, 8*c.Stock)
	c.Instances = cmp.Or(c.Instances, 3)
	c.MaxWait = cmp.Or(c.MaxWait, 2*time.Minute)
	return c
}

// Validate reports everything that is wrong with c.
func (c Config) Validate() error {
	c = c.withDefaults()
	var bad []error
	known := stock.NewStrategies(stock.Lockers{})
	names := known.Names()
	named := map[string]string{"redlock": c.Redlock, "zookeeper": c.ZooKeeper, "etcd": c.Etcd}
	for i, s := range c.Strategies {
		if !slices.Contains(names, s) {
			bad = append(bad, fmt.Errorf("--strategies: no strategy %q; there are %s", s, strings.Join(names, ", ")))
		} else if slices.Contains(c.Strategies[:i], s) {
			bad = append(bad, fmt.Errorf("--strategies: %q is named twice", s))
		} else if st, _ := known.Lookup(s); c.URL == "" && !c.All {
			if address, ok := named[st.Store]; ok && address == "" {
				bad = append(bad, fmt.Errorf("--strategies: %q needs --%s, or --all", s, st.Store))
			}
		}
	}
	if c.Stock < 1 || c.Stock > 100_000 {
		bad = append(bad, fmt.Errorf("--stock %d: want 1 to 100000", c.Stock))
	}
	if c.Attempts < 2*c.Stock || c.Attempts > 1_000_000 {
		bad = append(bad, fmt.Errorf("--attempts %d: want at least twice the stock of %d, so that there are buyers to refuse, and at most 1000000", c.Attempts, c.Stock))
	}
	if c.Instances < 1 || c.Instances > 32 {
		bad = append(bad, fmt.Errorf("--instances %d: want 1 to 32", c.Instances))
	}
	if c.URL != "" && c.Database == "" {
		bad = append(bad, errors.New("--url needs --database: the audit reads the database itself"))
	}
	if c.URL != "" && (c.All || c.Redis != "" || c.Redlock != "" || c.ZooKeeper != "" || c.Etcd != "") {
		bad = append(bad, errors.New("--url: the service has its lock services already"))
	}
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		bad = append(bad, fmt.Errorf("--url %q: want http://HOST:PORT", c.URL))
	}
	if c.JSON && c.Keep {
		bad = append(bad, errors.New("--keep and --json: the URLs of the instances are no part of the JSON"))
	}
	if c.URL != "" && c.Keep {
		bad = append(bad, errors.New("--keep: the instances at --url are not the demo's to stop"))
	}
	return errors.Join(bad...)
}
