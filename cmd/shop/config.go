package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"example.com/shop/internal/timeout"
)

// The defaults that several commands share.
const (
	defaultListen   = "127.0.0.1:8080"
	defaultDatabase = "sqlite:shop.db"
)

// errHelp says that help was asked for and given.
var errHelp = exitError(0)

// flags is a flag set whose flags can also be given by the environment.
type flags struct {
	*flag.FlagSet
	p    process
	what string
}

func newFlags(p process, name, what string) *flags {
	f := &flags{flag.NewFlagSet(name, flag.ContinueOnError), p, what}
	f.SetOutput(io.Discard)
	f.Usage = func() {} // the package would print all flags for every mistake
	return f
}

// help lists the flags.
func (f *flags) help() {
	fmt.Fprintf(f.p.stdout, "shop %s: %s\n\n", f.Name(), f.what)
	f.SetOutput(f.p.stdout)
	f.PrintDefaults()
}

// variable returns the environment variable of a flag.
func variable(name string) string {
	return "SHOP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// parse reads the environment and then args, which win. Anything wrong is a
// usageError that names the flag or the variable.
func (f *flags) parse(args []string) error {
	_, err := f.parseWith(args, 0, 0)
	return err
}

// parseWith does the same for a command that takes between least and most
// arguments beside its flags, in any order, and returns them. What follows -- is no flag.
func (f *flags) parseWith(args []string, least, most int) (rest []string, err error) {
	if err := f.environment(); err != nil {
		return nil, err
	}
	var plain []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, plain = args[:i], args[i+1:]
	}
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			f.help()
			return nil, errHelp
		} else if err != nil {
			return nil, usageError{fmt.Errorf("%s: %s", f.Name(), f.explain(err))}
		}
		if f.NArg() == 0 {
			break
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
	switch rest = append(rest, plain...); {
	case len(rest) > most:
		return nil, usageError{fmt.Errorf("%s: unexpected argument %q", f.Name(), rest[most])}
	case len(rest) < least:
		return nil, usageError{fmt.Errorf("%s: want %d arguments, not %d", f.Name(), least, len(rest))}
	}
	return rest, nil
}

// aDuration is the form of a duration, in words.
const aDuration = "a duration such as 90s, 15m or 1h30m"

// invalid matches what the package flag says of a value that it cannot read.
var invalid = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]+): `)

// explain says what is wrong with a command line, and what is wanted instead.
func (f *flags) explain(err error) string {
	text := err.Error()
	command, _, _ := strings.Cut(f.Name(), " [")
	if m := invalid.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("--%s %s: want %s", m[2], m[1], form(f.Lookup(m[2]), err))
	}
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return fmt.Sprintf("there is no flag --%s: shop %s --help lists those that there are", name, command)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Sprintf("--%s: want a value", name)
	}
	return text
}

// form says what a flag takes whose value was refused with err.
func form(fl *flag.Flag, err error) string {
	if g, ok := fl.Value.(flag.Getter); ok {
		switch g.Get().(type) {
		case time.Duration:
			return aDuration
		case int, int64:
			return "a whole number"
		case bool:
			return "true or false"
		case *slog.Level:
			return "debug, info, warn or error"
		}
	}
	return err.Error()
}

// environment reads the variables.
func (f *flags) environment() error {
	var bad []error
	f.VisitAll(func(fl *flag.Flag) {
		if v := f.p.getenv(variable(fl.Name)); v != "" {
			if err := f.Set(fl.Name, v); err != nil {
				bad = append(bad, fmt.Errorf("%s=%q: want %s", variable(fl.Name), v, form(fl, err)))
			}
		}
	})
	if len(bad) > 0 {
		return usageError{errors.Join(bad...)}
	}
	return nil
}

// serveConfig is what one instance is told.
type serveConfig struct {
	listen        string
	adminListen   string
	instance      string
	advertise     string
	database      string
	redis         string
	redlock       string
	zookeeper     string
	zookeeperAuth string
	etcd          string
	orderTTL      time.Duration
	permits       int
	rate          int
	maxOpen       int64
	auth          string
	canary        bool
	lane          string
	exitOnStdin   bool
	logLevel      slog.Level
}

func parseServe(p process, args []string) (serveConfig, error) {
	var c serveConfig
	f := newFlags(p, "serve", "run one instance of the order service")
	f.StringVar(&c.listen, "listen", defaultListen, "`HOST:PORT` to serve HTTP on; port 0 takes a free one")
	f.StringVar(&c.advertise, "advertise", "", "`HOST:PORT` at which others reach this instance, as shop cluster members shows it (default that of --listen; if that is every address of the machine, the first that is not loopback)")
	f.StringVar(&c.adminListen, "admin-listen", "", "loopback `HOST:PORT` to serve timers and profiles on, for shop timers, which looks for "+defaultAdmin+"; port 0 takes a free one (default none)")
	f.StringVar(&c.instance, "instance", "", "`NAME` of this instance in X-Instance-Id and in the ledger (default HOSTNAME-PID)")
	f.StringVar(&c.database, "database", defaultDatabase, "sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB")
	f.StringVar(&c.redis, "redis", "", "redis://HOST:6379/0, redis+sentinel://HOST:26379,.../MASTER or redis+cluster://HOST:6379,... for the strategies redis and redis-unfenced; without it they are refused")
	f.StringVar(&c.redlock, "redlock", "", "redis://HOST:6379/0,... of three or more servers that know nothing of one another, best five, for the strategy redlock")
	f.StringVar(&c.zookeeper, "zookeeper", "", "HOST:2181,... of all servers of an ensemble, for the strategy zookeeper")
	f.StringVar(&c.zookeeperAuth, "zookeeper-auth", "", "`USER:PASSWORD` for --zookeeper: what the instances have there is then of this user alone; best SHOP_ZOOKEEPER_AUTH in the environment (default none: whoever reaches the servers can change it)")
	f.StringVar(&c.etcd, "etcd", "", "HOST:2379,... of all members of a cluster, for the strategy etcd")
	f.DurationVar(&c.orderTTL, "order-ttl", 15*time.Minute, "how long an order waits for payment")
	f.IntVar(&c.permits, "permits", 64, "how many orders may be placed at the same time by all instances together, which agree on it through --redis, without which it is the number of each; 0: any number")
	f.IntVar(&c.rate, "customer-rate", -1, "how many orders a customer may place per second, and twice that at once; 0: any number (default 50 with --auth keys; else 0, for then anybody can claim to be anybody)")
	f.Lookup("customer-rate").DefValue = "0" // the text says what the default is
	f.Int64Var(&c.maxOpen, "max-open-orders", 0, "how many unpaid orders a customer may have; 0: any number")
	f.StringVar(&c.auth, "auth", "", "keys: every request needs an API key, see shop keys; none: nobody is asked (default none if --listen is a loopback address, otherwise keys)")
	f.BoolVar(&c.canary, "canary", false, "schedule the expiry of orders and leave it to other instances, so that a version on trial expires nothing")
	f.StringVar(&c.lane, "lane", timeout.Base, "`LANE` of the orders that this instance places and expires: one of its own keeps a version on trial to its own orders; those of a lane without instances go to base after 30s")
	f.BoolVar(&c.exitOnStdin, "exit-on-stdin-eof", false, "stop when standard input ends, so that the instance does not outlive the process that holds it")
	f.TextVar(&c.logLevel, "log-level", slog.LevelInfo, "`LEVEL` from which to log: debug, info, warn or error; debug has a line per request")
	if err := f.parse(args); err != nil {
		return c, err
	}
	if c.instance == "" {
		c.instance = hostname() + "-" + strconv.Itoa(os.Getpid())
	}
	if c.auth == "" {
		c.auth = authKeys
		if isLoopback(c.listen) {
			c.auth = authNone
		}
	}
	if c.rate == -1 {
		c.rate = 0
		if c.auth == authKeys {
			c.rate = 50
		}
	}
	return c, c.validate()
}

func (c serveConfig) validate() error {
	var bad []error
	bad = append(bad, validListen(c.listen), validAdvertise(c.advertise), validAdmin(c.adminListen))
	if len(c.instance) > 64 || strings.ContainsFunc(c.instance, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }) {
		bad = append(bad, fmt.Errorf("--instance %q: want 1 to 64 printable ASCII characters without spaces", c.instance))
	}
	if err := validOrderTTL(c.orderTTL); err != nil {
		bad = append(bad, fmt.Errorf("--%w", err))
	}
	if c.permits < 0 || c.permits > 1_000_000 {
		bad = append(bad, fmt.Errorf("--permits %d: want 0 to 1000000", c.permits))
	}
	if c.rate < 0 || c.rate > 1_000_000 {
		bad = append(bad, fmt.Errorf("--customer-rate %d: want 0 to 1000000", c.rate))
	}
	if c.maxOpen < 0 {
		bad = append(bad, fmt.Errorf("--max-open-orders %d: want 0 or more", c.maxOpen))
	}
	if c.auth != authKeys && c.auth != authNone {
		bad = append(bad, fmt.Errorf("--auth %q: want keys or none", c.auth))
	}
	if err := (timeout.Config{Lane: c.lane}).Validate(); err != nil {
		bad = append(bad, fmt.Errorf("--lane %q: want 1 to 32 letters, digits, dots, dashes and underscores", c.lane))
	}
	if c.canary && c.lane != timeout.Base {
		bad = append(bad, errors.New("--canary expires nothing, so a --lane of its own would have nobody: give one of them"))
	}
	bad = append(bad, validDatabase(c.database), validRedis(c.redis),
		validRedlock(c.redlock), validServers("zookeeper", c.zookeeper), validServers("etcd", c.etcd))
	if err := errors.Join(bad...); err != nil {
		return usageError{errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	return nil
}

func hostname() string {
	h, err := os.Hostname()
	if err != nil {
		return "shop"
	}
	return h
}

// given returns the names of the flags that were set.
func given(f *flags) map[string]bool {
	set := make(map[string]bool)
	f.Visit(func(fl *flag.Flag) { set[fl.Name] = true })
	return set
}

// redacted returns a URL without its password, or none.
func redacted(rawURL string) string {
	if rawURL == "" {
		return "none"
	}
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return "(malformed URL)"
	}
	at := strings.LastIndex(rest, "@")
	if at < 0 {
		return rawURL
	}
	user, _, secret := strings.Cut(rest[:at], ":")
	if secret {
		user += ":xxxxx"
	}
	return scheme + "://" + user + rest[at:]
}
