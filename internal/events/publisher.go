package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// quiet is how long an instance tells nothing new about a SKU or a kind of timers that
	// it has just told something about.
	quiet = 250 * time.Millisecond

	// reads bounds how many levels are read in one go, and readTime for how long.
	reads    = 64
	readTime = 2 * time.Second

	// lastTime is how long levels are read that are left when an instance stops, and then how long events are appended.
	lastTime = time.Second
)

// PublisherConfig is the configuration of a [Publisher]. Its zero value tells no levels.
type PublisherConfig struct {
	// Instance is the name of the process.
	Instance string

	// Levels reads the levels of those SKUs that there are, in any order. It is asked for those that have
	// changed, behind the change, by one goroutine. Nil means that levels are not told.
	Levels func(ctx context.Context, skus []string) ([]Stock, error)

	// OnError is called when reading levels or appending to the log begins to fail. It must not block. Nil means that
	// nobody is notified.
	OnError func(error)
}

// Publisher publishes what happens in this instance to all instances. No method but Run blocks or does
// input or output, whatever the state of the log is: they may be called right after a commit. What it
// collects is bounded by the SKUs and the kinds of timers that there are. It is safe for
// concurrent use.
type Publisher struct {
	cfg    PublisherConfig
	outbox *outbox

	wake    chan struct{} // has an element if there is something to collect
	failing bool          // of the goroutine of Run: levels cannot be read

	mu     sync.Mutex
	stocks map[string]struct{} // SKUs whose levels have changed
	locks  map[string]Lock
	timers map[string]map[string]int64 // by kind and outcome
}

// NewPublisher returns a Publisher. Nothing is in the log before Run.
func NewPublisher(log Log, c PublisherConfig) *Publisher {
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return &Publisher{
		cfg: c, outbox: newOutbox(log, c.OnError), wake: make(chan struct{}, 1),
		stocks: make(map[string]struct{}), locks: make(map[string]Lock), timers: make(map[string]map[string]int64),
	}
}

// Order tells that an order has changed, at once, and later the levels of its SKUs.
func (p *Publisher) Order(o Order) {
	p.publish(Event{Type: TypeOrder, Order: &o})
	skus := make([]string, len(o.Items))
	for i, it := range o.Items {
		skus[i] = it.SKU
	}
	p.Stock(skus...)
}

// Stock tells that the levels of SKUs have changed.
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

// Lock tells that this instance was granted a lease of a SKU.
func (p *Publisher) Lock(sku, strategy string, fence uint64) {
	p.collect(func() {
		p.locks[sku] = Lock{SKU: sku, Strategy: strategy, Holder: p.cfg.Instance, Fence: fence, Count: p.locks[sku].Count + 1}
	})
}

// Timers tells that n timers of a kind were worked off, with an outcome.
func (p *Publisher) Timers(kind, outcome string, n int) {
	p.collect(func() {
		if p.timers[kind] == nil {
			p.timers[kind] = make(map[string]int64)
		}
		p.timers[kind][outcome] += int64(n)
	})
}

// Member tells that an instance has joined or left, at once.
func (p *Publisher) Member(m Member) { p.publish(Event{Type: TypeMember, Member: &m}) }

// Leader tells who leads, or leads no more, at once.
func (p *Publisher) Leader(l Leader) { p.publish(Event{Type: TypeLeader, Leader: &l}) }

// Run appends to the log until ctx ends, and then what is left: the levels that can be read in a
// second, and what the log takes in another one. It is called once.
func (p *Publisher) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var sender sync.WaitGroup
	sender.Go(func() { p.outbox.run(sending) })
	defer sender.Wait()
	defer stop()
	p.collecting(ctx)
	return nil
}

// collecting publishes what is collected, until ctx ends and all is published.
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

// finish tells the rest.
func (p *Publisher) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastTime)
	defer cancel()
	for p.flush(ctx) {
	}
}

// collect notes something for Run.
func (p *Publisher) collect(note func()) {
	p.mu.Lock()
	note()
	p.mu.Unlock()
	p.wakeUp()
}

func (p *Publisher) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// flush tells what was collected. It reports whether there are more levels, which can be read.
func (p *Publisher) flush(ctx context.Context) (more bool) {
	p.mu.Lock()
	locks, timers := p.locks, p.timers
	p.locks, p.timers = make(map[string]Lock), make(map[string]map[string]int64)
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

// flushStock reads levels and tells them. What cannot be read is read later. It reports whether there
// are more than it has read.
func (p *Publisher) flushStock(ctx context.Context) (more bool) {
	skus := p.some()
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

// some takes as many of the changed SKUs as are read in one go.
func (p *Publisher) some() (skus []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for sku := range p.stocks {
		if len(skus) == reads {
			p.wakeUp() // the rest comes next
			break
		}
		skus = append(skus, sku)
		delete(p.stocks, sku)
	}
	return skus
}

func (p *Publisher) publish(e Event) {
	e.Instance, e.At = p.cfg.Instance, time.Now().UTC()
	text, err := encode(e)
	if err != nil {
		p.cfg.OnError(fmt.Errorf("events: %w", err))
		return
	}
	p.outbox.put(text)
}

// Stats returns how many events were published, and how many of them were dropped because too many waited for the log.
func (p *Publisher) Stats() (published, dropped uint64) {
	p.outbox.mu.Lock()
	defer p.outbox.mu.Unlock()
	return p.outbox.published, p.outbox.dropped
}
