package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// quiet is the least time between two events of an instance about the same SKU or kind of
	// timers.
	quiet = 250 * time.Millisecond

	// reads limits the levels of one read, and readTime its duration.
	reads    = 64
	readTime = 2 * time.Second

	// lastTime is the time limit for reading pending levels at shutdown, and then for appending events.
	lastTime = time.Second
)

// PublisherConfig is the configuration of a [Publisher]. Its zero value publishes no levels.
type PublisherConfig struct {
	// Instance is the name of the process.
	Instance string

	// Levels reads the levels of existing SKUs, in any order. One goroutine calls it for changed SKUs,
	// after the change. Nil means that levels are not published.
	Levels func(ctx context.Context, skus []string) ([]Stock, error)

	// OnError is called once per outage, when reading levels or appending to the log fails. It must not block, and
	// may be nil.
	OnError func(error)
}

// Publisher publishes the events of this instance to all instances. Only Run blocks or does
// input or output, so the other methods may be called right after a commit. Its
// memory is bounded by the number of SKUs and kinds of timers. It is safe for
// concurrent use.
type Publisher struct {
	cfg    PublisherConfig
	outbox *outbox

	wake    chan struct{} // has an element if there is something to collect
	failing bool          // of the goroutine of Run: levels cannot be read

	mu     sync.Mutex
	stocks map[string]struct{} // SKUs whose levels have changed
	locks  map[string]*leases
	waits  map[string]*waiters         // by SKU; there are some, or may be
	timers map[string]map[string]int64 // by kind and outcome
}

// NewPublisher returns a Publisher. Nothing is in the log before Run.
func NewPublisher(log Log, c PublisherConfig) *Publisher {
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return &Publisher{
		cfg: c, outbox: newOutbox(log, c.OnError), wake: make(chan struct{}, 1),
		stocks: make(map[string]struct{}), locks: make(map[string]*leases), waits: make(map[string]*waiters),
		timers: make(map[string]map[string]int64),
	}
}

// Order publishes a change of an order within some 100 ms, and later the levels of its SKUs.
func (p *Publisher) Order(o Order) {
	p.publish(Event{Type: TypeOrder, Order: &o})
	for _, it := range o.Items {
		p.Stock(it.SKU)
	}
}

// Stock publishes the changed levels of SKUs.
func (p *Publisher) Stock(skus ...string) {
	if p.cfg.Levels == nil {
		return
	}
	p.collect(func() {
		for _, sku := range skus {
			p.stocks[sku] = struct{}{}
		}
	})
}

// Timers publishes that n timers of a kind were handled, with an outcome.
func (p *Publisher) Timers(kind, outcome string, n int) {
	p.collect(func() {
		if p.timers[kind] == nil {
			p.timers[kind] = make(map[string]int64)
		}
		p.timers[kind][outcome] += int64(n)
	})
}

// Member publishes that an instance has joined or left, as soon as Order does.
func (p *Publisher) Member(m Member) { p.publish(Event{Type: TypeMember, Member: &m}) }

// Leader publishes that an instance leads, or has lost leadership, as soon as Order does.
func (p *Publisher) Leader(l Leader) { p.publish(Event{Type: TypeLeader, Leader: &l}) }

// Run appends events to the log until ctx ends. Then it has one second to read the pending levels, and
// another one to append the pending events. Call it once.
func (p *Publisher) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var sender sync.WaitGroup
	sender.Go(func() { p.outbox.run(sending) })
	defer sender.Wait()
	defer stop()
	p.collecting(ctx)
	return nil
}

// collecting publishes collected changes until ctx ends and all are published.
func (p *Publisher) collecting(ctx context.Context) {
	pause := time.NewTimer(quiet) // after what was published last
	pause.Stop()
	defer pause.Stop()
	for resting, pending := false, false; ; {
		select {
		case <-ctx.Done():
			p.finish(context.WithoutCancel(ctx))
			return
		case <-p.wake:
			pending = true
		case <-pause.C:
			resting = false
		}
		if pending && !resting {
			p.flush(ctx)
			pending, resting = false, true
			pause.Reset(quiet)
		}
	}
}

// finish publishes the pending changes.
func (p *Publisher) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastTime)
	defer cancel()
	for p.flush(ctx) {
	}
}

// collect records a change for Run.
func (p *Publisher) collect(note func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note()
	signal(p.wake)
}

// flush publishes the collected changes. It reports whether more levels can be read.
func (p *Publisher) flush(ctx context.Context) (more bool) {
	p.mu.Lock()
	p.countWaiters()
	locks, timers := make(map[string]Lock, len(p.locks)), p.timers
	for sku, l := range p.locks {
		locks[sku] = p.lockEvent(l)
	}
	p.locks, p.timers = make(map[string]*leases), make(map[string]map[string]int64)
	p.mu.Unlock()
	for _, sku := range slices.Sorted(maps.Keys(locks)) {
		l := locks[sku]
		p.publish(Event{Type: TypeLock, Lock: &l})
	}
	for _, kind := range slices.Sorted(maps.Keys(timers)) {
		p.publish(Event{Type: TypeTimer, Timer: &Timer{Kind: kind, Outcomes: timers[kind]}})
	}
	return p.flushStock(ctx)
}

// flushStock reads levels and publishes them, those of one read. Levels that cannot be read are read later. It reports whether there
// are more.
func (p *Publisher) flushStock(ctx context.Context) (more bool) {
	var skus []string
	p.mu.Lock()
	for sku := range p.stocks {
		if len(skus) == reads {
			signal(p.wake) // the rest comes next
			break
		}
		skus = append(skus, sku)
		delete(p.stocks, sku)
	}
	p.mu.Unlock()
	if len(skus) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	levels, err := p.cfg.Levels(ctx, skus)
	if err != nil {
		if !p.failing && !errors.Is(ctx.Err(), context.Canceled) {
			p.failing = true
			p.cfg.OnError(fmt.Errorf("events: the levels of %d SKUs, %q among them: %w", len(skus), skus[0], err))
		}
		p.Stock(skus...)
		return false
	}
	p.failing = false
	for _, level := range levels {
		p.publish(Event{Type: TypeStock, Stock: &level})
	}
	return len(skus) == reads
}

func (p *Publisher) publish(e Event) {
	e.Instance, e.At = p.cfg.Instance, time.Now().UTC()
	text, err := json.Marshal(e)
	if err != nil {
		p.cfg.OnError(fmt.Errorf("events: %w", err))
		return
	}
	p.outbox.put(string(text))
}

// Stats returns the number of published events, and of those that were dropped because the queue was full.
func (p *Publisher) Stats() (published, dropped uint64) {
	p.outbox.mu.Lock()
	defer p.outbox.mu.Unlock()
	return p.outbox.published, p.outbox.dropped
}
