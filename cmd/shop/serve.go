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

// garbage is the default of GOGC, in percent of the memory in use. That is some 20 MB. With the usual 100, a tenth of
// the processor time of an order went into the collector. GOGC and GOMEMLIMIT count as usual.
const garbage = 400

// serveCommand runs one instance until it is interrupted, and then drains it.
func serveCommand() cli.Command {
	return cli.Command{
		Name: "serve", Summary: "Run one instance of the order service",
		Details: "Instances with the same --database sell the same stock. A strategy whose store is not named is refused. " +
			"Ctrl-C or SIGTERM drains the instance: requests finish, and timers go to other instances.",
		Examples: []cli.Example{
			{Purpose: "One instance on a SQLite file in this folder", Line: "shop serve"},
			{Purpose: "A second instance on the same file", Line: "shop serve --listen 127.0.0.1:8090 --instance shop-2"},
			{Purpose: "With the strategies on Redis, and the admin listener that shop timers uses", Line: "shop serve --redis redis://127.0.0.1:6379/0 --admin-listen 127.0.0.1:8081"},
			{Purpose: "A password stays out of the process list", Line: "SHOP_DATABASE=mysql://USER:PASSWORD@127.0.0.1:3306/shop shop serve --auth keys"},
		},
		Exits: []cli.Exit{{Code: 0, Meaning: "drained after Ctrl-C or SIGTERM"}, {Code: 1, Meaning: "a listener or a store is unavailable"}},
		Env: []cli.Variable{
			{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Meaning: "Export traces, metrics and logs by OTLP to this URL, such as http://127.0.0.1:4318; the other OTEL_EXPORTER_OTLP_ variables apply too"},
			{Name: "OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_LOGS_EXPORTER", Meaning: "Use another exporter, such as console; none exports nothing; memory, for traces, only keeps the last minutes for the trace of an order"},
			{Name: "OTEL_SDK_DISABLED", Meaning: "Export nothing if the value is true; the metrics of the admin listener stay"},
			{Name: "OTEL_TRACES_SAMPLER", Meaning: "Sample traces by this sampler of OpenTelemetry; the default samples all"},
			{Name: "OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES", Meaning: "Describe the instance in what it exports"},
			{Name: "GOGC, GOMEMLIMIT", Meaning: "Tune the garbage collector of Go; the default of GOGC is " + strconv.Itoa(garbage) + " here"},
		},
		Define: func(f *cli.Flags) cli.Run {
			s := &serving{f: f}
			s.define()
			return s.run
		},
	}
}

// serving is the command with its flags.
type serving struct {
	f           *cli.Flags
	config      app.Config
	exitOnStdin bool
}

// define defines the flags.
func (s *serving) define() {
	f, c := s.f, &s.config
	f.EveryVariable()
	instanceStoresVar(f, c)
	f.Group("Listening")
	f.StringVar(&c.Listen, "listen", app.DefaultListen, "`HOST:PORT`: serve HTTP at this address; port 0 takes a free one")
	f.StringVar(&c.AdminListen, "admin-listen", "", "`HOST:PORT`: serve timers, metrics and profiles at this loopback address; shop timers asks "+app.DefaultAdminListen+"; port 0 takes a free one")
	f.StringVar(&c.MetricsListen, "metrics-listen", "", "`HOST:PORT`: serve /metrics alone at this address, for collectors on other machines; it needs no key; port 0 takes a free one")
	f.ChoiceVar(&c.Auth, "auth", "", []string{app.AuthKeys, app.AuthNone}, "`MODE`: require an API key with every request, or disable authentication")
	f.DefaultText("auth", "none if --listen is a loopback address, otherwise keys")
	f.Group("Orders and limits")
	f.DurationVar(&c.OrderTTL, "order-ttl", 15*time.Minute, "expire an unpaid order after this time, 1s to 720h")
	f.IntVar(&c.Permits, "permits", 64, "`ORDERS`: place at most this many orders at the same time over all instances, which share the limit by --redis; without --redis it holds per instance; 0 means no limit")
	f.IntVar(&c.CustomerRate, "customer-rate", -1, "`ORDERS`: accept at most this many orders per second of a customer, and twice as many in a burst; 0 means no limit")
	f.DefaultText("customer-rate", "50 with --auth keys, otherwise 0")
	f.Int64Var(&c.MaxOpenOrders, "max-open-orders", 0, "`ORDERS`: let a customer have at most this many unpaid orders; 0 means no limit")
	f.DurationVar(&c.Retention, "retention", 0, "delete paid, cancelled, expired and rejected orders, with their ledger entries, this long after the end of their TTL; not less than --key-retention, by default 24h; 0 keeps them for ever")
	f.DurationVar(&c.KeyRetention, "key-retention", app.KeyRetention, "answer a request that is sent again with its Idempotency-Key as before for this time, at least 1h")
	f.StringVar(&c.Webhook, "webhook", "", "`URL`: deliver each ledger entry to this address at least once, in the order of its SKU; all instances get the same")
	f.StringVar(&c.WebhookSecret, "webhook-secret", "", "`SECRET`: sign deliveries with this secret, whsec_ and base64, as Standard Webhooks says")
	f.Group("Cluster")
	f.StringVar(&c.Instance, "instance", "", "`NAME`: call the instance so in responses, ledger and logs; 1 to 64 characters")
	f.DefaultText("instance", "HOSTNAME-PID")
	f.StringVar(&c.Advertise, "advertise", "", "`HOST:PORT`: announce this address to the other instances, as shop cluster members shows it")
	f.DefaultText("advertise", "--listen, or the first address of the machine that is not loopback")
	f.BoolVar(&c.Canary, "canary", false, "schedule the expiry of orders, but leave it to other instances: for a version on trial")
	f.StringVar(&c.Partition, "partition", timeout.Base, "`NAME`: place and expire the orders of this partition; if a partition has no instance, its timers go to base after 30s")
	f.Group("Process and logs")
	f.TextVar(&c.LogLevel, "log-level", slog.LevelInfo, []string{"debug", "info", "warn", "error"}, "`LEVEL`: log from this level; debug logs each request")
	f.DefaultText("log-level", "info")
	f.BoolVar(&s.exitOnStdin, "exit-on-stdin-eof", false, "stop when standard input ends, so that the instance does not outlive its parent process")
}

// run completes the configuration and runs the instance.
func (s *serving) run(ctx context.Context, _ []string) error {
	c := s.config
	c.Version, c.TextLogs = version(), isTerminal(s.f.Stderr)
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
		return cli.UsageError{Err: err}
	}
	if s.exitOnStdin {
		ctx = untilEOF(ctx, s.f.Stdin)
	}
	if s.f.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	return app.Run(ctx, c, s.f.Stdout, s.f.Stderr)
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

// instanceStoresVar defines the flags of the stores of an instance.
func instanceStoresVar(f *cli.Flags, c *app.Config) {
	f.Group("Stores")
	f.DatabaseVar(&c.Database)
	f.StringVar(&c.Redis, "redis", "", "`URL`: use Redis at redis://HOST:6379/0, redis+sentinel://HOST:26379,.../MASTER or redis+cluster://HOST:6379,... "+
		"for the strategies redis, redis-cohort, redis-unfenced and lua, shared permits, the wait queue, events and timers")
	f.Group("Lock services")
	f.StringVar(&c.Redlock, "redlock", "", "`URL,...`: use these independent Redis servers for the strategies redlock and redlock-cohort; an odd number from 3, each redis://HOST:6379/0")
	f.StringVar(&c.ZooKeeper, "zookeeper", "", "`HOST:2181,...`: use all servers of this ensemble for the strategies zookeeper and zookeeper-cohort, members and shared settings")
	f.StringVar(&c.ZooKeeperAuth, "zookeeper-auth", "", "`USER:PASSWORD`: authenticate to --zookeeper as this user, who alone can then change the nodes of the instances; prefer the variable")
	f.StringVar(&c.Etcd, "etcd", "", "`HOST:2379,...`: use all members of this cluster for the strategies etcd and etcd-cohort")
}
