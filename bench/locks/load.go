package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"example.com/shop/bench/measure"
)

// maxWait is how long a waiter that is left at the end of a run may still wait.
const maxWait = 20 * time.Second

// load is callers that acquire and release, and hold for no time.
type load struct {
	clients    int
	goroutines int  // per client
	shared     bool // one key for all of them, not one each

	// inside runs between the two steps that the lock makes one. May be nil, as it is in a measurement.
	inside func()

	// fault breaks something before the run, when everybody has acquired once. May be nil.
	fault func(*servers) (repair func() error, err error)
}

// gate is what the lock protects.
type gate struct {
	inside  atomic.Int64
	counter atomic.Int64 // read and written in two steps, which only a lock makes one
	crowds  atomic.Int64 // how often there were too many inside
	between func()       // runs between the two steps, unless it is nil
}

func (g *gate) enter(permits int) {
	if g.inside.Add(1) > int64(permits) {
		g.crowds.Add(1)
	}
	seen := g.counter.Load()
	if g.between != nil {
		g.between()
	}
	g.counter.Store(seen + 1)
}

func (g *gate) leave() { g.inside.Add(-1) }

// check fails if the lock did.
func (g *gate) check(permits int, grants int64) error {
	if n := g.crowds.Load(); n > 0 {
		return fmt.Errorf("mutual exclusion violated: %d times more than %d inside", n, permits)
	}
	if got := g.counter.Load(); permits == 1 && got != grants {
		return fmt.Errorf("mutual exclusion violated: the counter is %d after %d grants", got, grants)
	}
	return nil
}

// caller is one goroutine of a load.
type caller struct {
	client *client
	key    string
	gate   *gate
	inTime int // grants within the time of the run
	waits  []time.Duration
	gave   []time.Duration // what releases took
}

// loop acquires and releases until end, once at least. A wait that lasts beyond end counts among the waits: starving
// callers must not be left out.
func (c *caller) loop(ctx context.Context, permits int, end time.Time) error {
	for {
		start := time.Now()
		release, err := c.client.acquire(ctx, c.key)
		if err != nil {
			return err
		}
		got := time.Now()
		c.gate.enter(permits)
		c.gate.leave()
		back := time.Now()
		if err := release(ctx); err != nil {
			return err
		}
		c.gave = append(c.gave, time.Since(back))
		c.waits = append(c.waits, got.Sub(start))
		if got.Before(end) {
			c.inTime++
		}
		if time.Now().After(end) {
			return nil
		}
	}
}

// run puts the load on s for d.
func (l load) run(ctx context.Context, on *servers, s subject, d time.Duration) (result sample, err error) {
	all, err := open(ctx, on, s, l.clients)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, all.close(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, d+2*maxWait)
	defer cancel()
	permits := max(1, s.permit)
	name, shared := rand.Text(), &gate{between: l.inside}
	callers := make([]*caller, l.clients*l.goroutines)
	for i := range callers {
		callers[i] = &caller{client: all[i%l.clients], key: name, gate: shared}
		if !l.shared {
			callers[i].key, callers[i].gate = name+strconv.Itoa(i), &gate{between: l.inside}
		}
	}
	// Once round, so that everybody is connected, and subscribed.
	once := func(i int) error { return callers[i].loop(ctx, permits, time.Now()) }
	if err := measure.Together(len(callers), once); err != nil {
		return sample{}, err
	}
	for _, c := range callers {
		c.inTime, c.waits, c.gave = 0, make([]time.Duration, 0, 1<<12), make([]time.Duration, 0, 1<<12)
		c.gate.counter.Store(0)
	}
	if l.fault != nil {
		repair, failed := l.fault(on)
		if failed != nil {
			return sample{}, failed
		}
		defer func() { err = cmp.Or(err, repair()) }()
	}
	runtime.GC()
	before, err := on.redis.Usage(ctx)
	if err != nil {
		return sample{}, err
	}
	children := measure.ChildrenCPU()
	end := time.Now().Add(d)
	if err := measure.Together(len(callers), func(i int) error { return callers[i].loop(ctx, permits, end) }); err != nil {
		return sample{}, err
	}
	children = measure.ChildrenCPU() - children
	after, err := on.redis.Usage(ctx)
	if err != nil {
		return sample{}, err
	}
	result, err = summary(callers, s, d, before, after)
	result.served = float64(children.Microseconds()) / result.grants
	return result, err
}

// summary is what a run of d has brought, if the lock has done its duty.
func summary(callers []*caller, s subject, d time.Duration, before, after measure.Usage) (sample, error) {
	var (
		waits  []time.Duration
		gave   []time.Duration
		inTime int
		grants = map[*gate]int64{}
		counts []float64
	)
	for _, c := range callers {
		waits, gave = append(waits, c.waits...), append(gave, c.gave...)
		grants[c.gate] += int64(len(c.waits))
		inTime += c.inTime
		counts = append(counts, float64(c.inTime))
	}
	for g, n := range grants {
		if err := g.check(max(1, s.permit), n); err != nil {
			return sample{}, err
		}
	}
	slices.Sort(waits)
	slices.Sort(gave)
	commands, all := sent(before, after, s)
	n := float64(len(waits))
	return sample{
		grants: n, rate: float64(inTime) / d.Seconds(),
		p50: measure.Percentile(waits, 50), p99: measure.Percentile(waits, 99), max: measure.Percentile(waits, 100),
		gave50: measure.Percentile(gave, 50), gave99: measure.Percentile(gave, 99),
		least: slices.Min(counts), most: slices.Max(counts), spread: slices.Max(counts) / slices.Min(counts),
		commands: float64(commands) / n, calls: float64(all) / n,
		cpu: float64((after.CPU - before.CPU).Microseconds()) / n, own: float64((after.Own - before.Own).Microseconds()) / n,
	}, nil
}
