package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/cli"
	"example.com/shop/internal/timeout"
)

// garbage is how much is collected at once, in percent of what is in use: that is small, some
// 20 MB, and with the usual 100 a tenth of the processor time of an order went into
// collecting. GOGC and GOMEMLIMIT count as usual.
const garbage = 400

// serve runs one instance until ctx ends, and then drains it.
func serve(ctx context.Context, f *cli.Flags, args []string) error {
	c, exitOnStdin, err := parseServe(f, args)
	if err != nil {
		return err
	}
	if exitOnStdin {
		ctx = untilEOF(ctx, f.Stdin)
	}
	if f.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	return app.Run(ctx, c, f.Stdout, f.Stderr)
}

// parseServe reads the flags of an instance.
func parseServe(f *cli.Flags, args []string) (c app.Config, exitOnStdin bool, err error) {
	c.Version, c.TextLogs = version(), isTerminal(f.Stderr)
	f.StringVar(&c.Listen, "listen", app.DefaultListen, "`HOST:PORT` to serve HTTP on; port 0 takes a free one")
	f.StringVar(&c.Advertise, "advertise", "", "`HOST:PORT` at which others reach this instance, as shop cluster members shows it (default that of --listen; if that is every address of the machine, the first that is not loopback)")
	f.StringVar(&c.AdminListen, "admin-listen", "", "loopback `HOST:PORT` to serve timers and profiles on, for shop timers, which looks for "+app.DefaultAdminListen+"; port 0 takes a free one (default none)")
	f.StringVar(&c.Instance, "instance", "", "`NAME` of this instance in X-Instance-Id and in the ledger (default HOSTNAME-PID)")
	f.StringVar(&c.Database, "database", app.DefaultDatabase, "sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB")
	f.StringVar(&c.Redis, "redis", "", "redis://HOST:6379/0, redis+sentinel://HOST:26379,.../MASTER or redis+cluster://HOST:6379,... for the strategies redis and redis-unfenced; without it they are refused")
	f.StringVar(&c.Redlock, "redlock", "", "redis://HOST:6379/0,... of three or more servers that know nothing of one another, best five, for the strategy redlock")
	f.StringVar(&c.ZooKeeper, "zookeeper", "", "HOST:2181,... of all servers of an ensemble, for the strategy zookeeper")
	f.StringVar(&c.ZooKeeperAuth, "zookeeper-auth", "", "`USER:PASSWORD` for --zookeeper: what the instances have there is then of this user alone; best SHOP_ZOOKEEPER_AUTH in the environment (default none: whoever reaches the servers can change it)")
	f.StringVar(&c.Etcd, "etcd", "", "HOST:2379,... of all members of a cluster, for the strategy etcd")
	f.DurationVar(&c.OrderTTL, "order-ttl", 15*time.Minute, "how long an order waits for payment")
	f.IntVar(&c.Permits, "permits", 64, "how many orders may be placed at the same time by all instances together, which agree on it through --redis, without which it is the number of each; 0: any number")
	f.IntVar(&c.CustomerRate, "customer-rate", -1, "how many orders a customer may place per second, and twice that at once; 0: any number (default 50 with --auth keys; else 0, for then anybody can claim to be anybody)")
	f.Lookup("customer-rate").DefValue = "0" // the text says what the default is
	f.Int64Var(&c.MaxOpenOrders, "max-open-orders", 0, "how many unpaid orders a customer may have; 0: any number")
	f.StringVar(&c.Auth, "auth", "", "keys: every request needs an API key, see shop keys; none: authentication disabled (default none if --listen is a loopback address, otherwise keys)")
	f.BoolVar(&c.Canary, "canary", false, "schedule the expiry of orders and leave it to other instances, so that a version on trial expires nothing")
	f.StringVar(&c.Partition, "partition", timeout.Base, "`PARTITION` of the orders that this instance places and expires: one of its own keeps a version on trial to its own orders; those of a partition without instances go to base after 30s")
	f.BoolVar(&exitOnStdin, "exit-on-stdin-eof", false, "stop when standard input ends, so that the instance does not outlive the process that holds it")
	f.TextVar(&c.LogLevel, "log-level", slog.LevelInfo, "`LEVEL` from which to log: debug, info, warn or error; debug has a line per request")
	if err := f.Parse(args); err != nil {
		return c, false, err
	}
	if c.Instance == "" {
		c.Instance = app.Hostname() + "-" + strconv.Itoa(os.Getpid())
	}
	if c.Auth == "" {
		c.Auth = app.AuthKeys
		if app.IsLoopback(c.Listen) {
			c.Auth = app.AuthNone
		}
	}
	if c.CustomerRate == -1 {
		c.CustomerRate = 0
		if c.Auth == app.AuthKeys {
			c.CustomerRate = 50
		}
	}
	if err := c.Validate(); err != nil {
		return c, false, cli.UsageError{Err: err}
	}
	return c, exitOnStdin, nil
}

// untilEOF returns a context that ends with ctx, and when r ends: whoever holds
// the other end of r has gone. Its goroutine lasts as long as the process.
func untilEOF(ctx context.Context, r io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, r)
		cancel(errors.Join(errors.New("standard input has ended"), err))
	}()
	return ctx
}
