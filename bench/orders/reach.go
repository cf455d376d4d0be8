package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"example.com/shop/bench/throughput"
)

// reach measures all goals. The first come from the runs of all variants; the others from
// pairs of runs that differ in one thing, one after the other. With an error it returns those that
// were measured.
func reach(ctx context.Context, c throughput.Config, reports []throughput.Report) ([]goal, error) {
	var goals []goal
	for _, pair := range []struct {
		of, to, what string
		target       float64 // if all buy the same
	}{
		{hot, "naive", "naive, which oversells", 8},
		{"conditional", "naive", "naive, which oversells", 8},
		{hot, "conditional", "conditional, which shares transactions as well", 0},
		{hot, "redsync", "one redsync lock per order", 60},
	} {
		for _, r := range reports {
			if of, to := variantOf(r, pair.of), variantOf(r, pair.to); to.Rounds != nil {
				g := goal{pairs: rounds(of, to, rate)}
				skus := fmt.Sprintf("%d SKUs", r.Load.SKUs)
				if r.Load.SKUs == 1 {
					skus, g.target = "one SKU", pair.target
				}
				g.name = fmt.Sprintf("orders/s, %s / %s, %d buyers of %s", pair.of, pair.what, r.Load.Connections, skus)
				goals = append(goals, g)
			}
		}
	}
	c.Peers, c.NoLimits = nil, true
	g, err := atThePeakOfNaive(ctx, c)
	if err != nil {
		return goals, fmt.Errorf("p99 at the peak of naive: %w", err)
	}
	others, err := pairs(ctx, c, regexp.MustCompile(""))
	return append(append(goals, g), others...), err
}

// pairs measures the comparisons whose names match.
func pairs(ctx context.Context, c throughput.Config, wanted *regexp.Regexp) (goals []goal, err error) {
	c.Peers, c.NoLimits = nil, true
	for _, comparison := range comparisons {
		if !wanted.MatchString(comparison.name) {
			continue
		}
		g, err := comparison.measure(ctx, c)
		if err != nil {
			return goals, fmt.Errorf("%s: %w", comparison.name, err)
		}
		goals = append(goals, g)
	}
	return goals, nil
}

const (
	times   = 3   // pairs of runs of each thing: the machine is not the same for long
	crowded = 384 // buyers who have soon placed many orders
)

// atThePeakOfNaive has orders arrive by the clock, as many as naive sold a moment before to buyers who
// come back at once.
func atThePeakOfNaive(ctx context.Context, c throughput.Config) (goal, error) {
	g := goal{target: 0.5, most: true}
	var rates []string
	c.Rounds = 1
	for range times {
		closed := c
		closed.Strategies = []string{"naive"}
		r, err := throughput.Throughput(ctx, closed)
		if err != nil {
			return goal{}, err
		}
		open := c
		open.Strategies, open.Rate = []string{"naive", hot}, max(1, int(r.Variants[0].OrdersPerSecond))
		if r, err = throughput.Throughput(ctx, open); err != nil {
			return goal{}, err
		}
		rates = append(rates, strconv.Itoa(open.Rate))
		g.pairs = append(g.pairs, rounds(variantOf(r, hot), variantOf(r, "naive"), func(r throughput.Round) float64 { return r.P99 })...)
	}
	g.name = fmt.Sprintf("p99, %s / naive, at as many orders/s by the clock as naive sold a moment before: %s", hot, strings.Join(rates, ", "))
	return g, nil
}

// comparison is of two runs that differ in one thing.
type comparison struct {
	name     string
	strategy string  // empty: that of the hot SKU
	target   float64 // 0: none
	most     bool    // the target is not to be exceeded
	of, to   func(*throughput.Config)
	figure   func(throughput.Variant) float64

	telemetry string // of one run: the variable of OpenTelemetry that says where to send it; empty: nowhere
	pairs     int    // default times
}

// comparisons are those that need runs of their own.
var comparisons = []comparison{
	{
		name: "orders/s with a key per order, permits for all, and traces of 1% / without them", target: 0.8, figure: perSecond,
		of:        func(c *throughput.Config) { c.Keys = true },
		to:        func(c *throughput.Config) { c.Args = []string{"--permits", "0"} },
		telemetry: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	},
	{
		name: "orders/s with those, a limit per customer, and metrics sent / without all of them", target: 0.8, figure: perSecond,
		of:        func(c *throughput.Config) { c.Keys, c.Args = true, []string{"--customer-rate", "1000"} },
		to:        func(c *throughput.Config) { c.Args = []string{"--permits", "0"} },
		telemetry: "OTEL_EXPORTER_OTLP_ENDPOINT",
	},
	threeToOne("conditional", "each sold by one instance", true),
	threeToOne("conditional", "each sold by all", false),
	threeToOne(hot, "each sold by one instance", true),
	threeToOne(hot, "each sold by all", false),
	postgresToMariaDB("conditional", 1),
	postgresToMariaDB("conditional", 96),
	postgresToMariaDB(hot, 1),
	{
		name: "processor time of an order, beside 100,000 SKUs / beside 10", target: 1.2, most: true, figure: processorTime,
		of: func(c *throughput.Config) { c.Catalog = 100_000 },
		to: func(c *throughput.Config) { c.Catalog = 10 },
	},
	{
		name: "processor time of an order, beside 1,000,000 open orders / beside one", target: 1.2, most: true, figure: processorTime,
		of:    func(c *throughput.Config) { c.Open, c.Rounds, c.Connections = 1_000_000, times, crowded },
		to:    func(c *throughput.Config) { c.Open, c.Rounds, c.Connections = 1, times, crowded },
		pairs: 1,
	},
	tracesToNone("conditional", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
	tracesToNone("conditional", ""),
	tracesToNone(hot, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
	tracesToNone(hot, ""),
}

// tracesToNone compares the service with and without traces, or, for the noise, without and without.
func tracesToNone(strategy, telemetry string) comparison {
	c := comparison{
		name: "orders per second of processor time of shop, traces of 1% / without them, " + strategy, strategy: strategy, target: 0.97, telemetry: telemetry,
		figure: func(a throughput.Variant) float64 { return 1000 / a.CPU["shop"] }, pairs: 7,
		of: func(*throughput.Config) {}, to: func(*throughput.Config) {},
	}
	if telemetry == "" {
		c.name, c.target = "the same, without traces / without them, "+strategy, 0
	}
	return c
}

// postgresToMariaDB compares the databases, which the same buyers use for the same time.
func postgresToMariaDB(strategy string, skus int) comparison {
	return comparison{
		name: fmt.Sprintf("orders/s, PostgreSQL / MariaDB, %s, SKUs: %d", strategy, skus), strategy: strategy, target: 0.9, figure: perSecond,
		of: func(c *throughput.Config) { c.Stores, c.SKUs = []string{"postgresql", "redis"}, skus },
		to: func(c *throughput.Config) { c.Stores, c.SKUs = []string{"mariadb", "redis"}, skus },
	}
}

// threeToOne compares three instances with one, which sell 96 SKUs.
func threeToOne(strategy, how string, own bool) comparison {
	return comparison{
		name: "orders/s, three instances / one, " + strategy + ", 96 SKUs, " + how, strategy: strategy, target: 1, figure: perSecond,
		of: func(c *throughput.Config) { c.Instances, c.SKUs, c.Own = 3, 96, own },
		to: func(c *throughput.Config) { c.Instances, c.SKUs, c.Own = 1, 96, own },
	}
}

// earlier compares strategies with their own earlier selves.
func earlier(shop string) (all []comparison) {
	self := func(what, strategy string, target float64, most bool, figure func(throughput.Variant) float64, load func(*throughput.Config)) {
		all = append(all, comparison{
			name: what + ", " + strategy + " / the same of the earlier shop", strategy: strategy, target: target, most: most, figure: figure, pairs: 5,
			of: load,
			to: func(c *throughput.Config) {
				load(c)
				c.Executable = shop
			},
		})
	}
	catalogue := func(c *throughput.Config) { c.SKUs = 96 }
	lonely := func(c *throughput.Config) { c.Instances, c.Connections = 1, 1 }
	median := func(v throughput.Variant) float64 { return v.P50 }
	self("orders/s, 96 SKUs", hot, 1.3, false, perSecond, catalogue)
	self("orders/s, 96 SKUs", "conditional", 0.95, false, perSecond, catalogue)
	self("orders/s, one SKU", hot, 0.95, false, perSecond, func(*throughput.Config) {})
	self("orders/s, one SKU", "conditional", 0.95, false, perSecond, func(*throughput.Config) {})
	self("orders/s, one SKU, 384 buyers", hot, 0.95, false, perSecond, func(c *throughput.Config) { c.Connections = crowded })
	self("p50, one connection", "conditional", 1.05, true, median, lonely)
	self("p50, one connection", hot, 1.05, true, median, lonely)
	return all
}

func perSecond(a throughput.Variant) float64 { return a.OrdersPerSecond }

// processorTime is what an order costs all processes but the one that places it.
func processorTime(a throughput.Variant) (sum float64) {
	for kind, used := range a.CPU {
		if kind != "load" {
			sum += used
		}
	}
	return sum
}

// measure runs the pairs, every second one the other way round.
func (p comparison) measure(ctx context.Context, c throughput.Config) (g goal, err error) {
	g = goal{name: p.name, target: p.target, most: p.most}
	run := func(set func(*throughput.Config), telemetry string) (figure float64) {
		if err != nil {
			return 0
		}
		one, strategy := c, cmp.Or(p.strategy, hot)
		one.Strategies, one.Rounds = []string{strategy}, 1
		set(&one)
		var r throughput.Report
		if telemetry == "" {
			r, err = throughput.Throughput(ctx, one)
		} else {
			r, err = telling(ctx, one, telemetry)
		}
		return p.figure(variantOf(r, one.Strategies[0]))
	}
	for n := 0; err == nil && n < cmp.Or(p.pairs, times); n++ {
		var of, to float64
		if n%2 == 0 {
			of, to = run(p.of, p.telemetry), run(p.to, "")
		} else {
			to, of = run(p.to, ""), run(p.of, p.telemetry)
		}
		g.pairs = append(g.pairs, of/to)
	}
	return g, err
}

// telling is [throughput.Throughput] with telemetry: instances send the traces of one order in a hundred to a
// receiver that discards them. The variable names the receiver, and decides whether metrics go there too.
func telling(ctx context.Context, c throughput.Config, variable string) (r throughput.Report, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	var spans atomic.Int64
	receiver := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); r.URL.Path == "/v1/traces" {
			spans.Add(n)
		}
	})}
	go receiver.Serve(l) //nolint:errcheck // it ends when it is closed
	defer func() { err = errors.Join(err, receiver.Close()) }()
	address := "http://" + l.Addr().String()
	if strings.Contains(variable, "TRACES") { // that one is taken as it is
		address += "/v1/traces"
	}
	for name, value := range map[string]string{
		variable:                  address,
		"OTEL_TRACES_SAMPLER":     "parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG": "0.01",
	} {
		if err := os.Setenv(name, value); err != nil { // the instances inherit it
			return r, err
		}
		defer os.Unsetenv(name)
	}
	if r, err = throughput.Throughput(ctx, c); err == nil && spans.Load() == 0 {
		err = errors.New("no traces arrived")
	}
	return r, err
}
