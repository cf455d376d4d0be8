package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"example.com/shop/internal/stock"
)

// Strategies that are expected to oversell.
var controls = []string{"naive", "local"}

// A strategy that is exact as long as nobody outlives a lease.
const unfenced = "redis-unfenced"

const buyers = 32

// Config says what to sell, where, and how to tell.
type Config struct {
	Strategies []string // default: all whose stores there are
	Stock      int      // units per arm; default 100
	Attempts   int      // buyers' attempts per arm; default 8 times the stock
	Instances  int      // default 3

	// Redis and Database name real stores. Empty ones are embedded: a Redis in
	// this process and an SQLite file in a temporary folder.
	Redis    string
	Database string

	// Redlock, ZooKeeper and Etcd name lock services as the instances are told of them.
	// The strategies of empty ones are left out.
	Redlock, ZooKeeper, Etcd string

	// All starts a server of each kind that is installed and not named above.
	All bool

	// Target is the base URL of a service that runs already, with Database
	// behind it. Empty: instances are started from Executable.
	Target     string
	Executable string

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
	if c.Stock < 1 || c.Stock > 100_000 {
		bad = append(bad, fmt.Errorf("--stock %d: want 1 to 100000", c.Stock))
	}
	if c.Attempts < 2*c.Stock || c.Attempts > 1_000_000 {
		bad = append(bad, fmt.Errorf("--attempts %d: want at least twice the stock of %d, so that there are buyers to refuse, and at most 1000000", c.Attempts, c.Stock))
	}
	if c.Instances < 1 || c.Instances > 32 {
		bad = append(bad, fmt.Errorf("--instances %d: want 1 to 32", c.Instances))
	}
	if c.Target != "" && c.Database == "" {
		bad = append(bad, errors.New("--target needs --database: the audit reads the books themselves"))
	}
	if c.Target != "" && (c.All || c.Redis != "" || c.Redlock != "" || c.ZooKeeper != "" || c.Etcd != "") {
		bad = append(bad, errors.New("--target: the service has its lock services already"))
	}
	if u, err := url.Parse(c.Target); c.Target != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		bad = append(bad, fmt.Errorf("--target %q: want http://HOST:PORT", c.Target))
	}
	if c.JSON && c.Keep {
		bad = append(bad, errors.New("--keep and --json: the URLs of the instances are no part of the JSON"))
	}
	if c.Target != "" && c.Keep {
		bad = append(bad, errors.New("--keep: the instances behind --target are not the demo's to stop"))
	}
	return errors.Join(bad...)
}
