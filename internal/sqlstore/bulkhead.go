package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"example.com/shop/internal/sqlerr"
	"example.com/shop/internal/stock"
)

const (
	// probers is how many rows are probed at the same time by one process.
	probers = 2

	// probePause is how long a row that is locked is left alone between two probes.
	probePause = 100 * time.Millisecond
)

// bulkheads keep a SKU whose row is locked, or wanted by many, from using up the connections. Per SKU a process has
// a bounded number of places for those who write to its row. Whoever finds them taken waits without a connection.
//
// A transaction that waited in vain for a row lock has every SKU that it wrote to probed. As long as
// the probe of a SKU waits in vain as well, nobody is admitted to that SKU. The probe waits for the lock as writers do,
// so it gets its turn at a row that many want. A nil *bulkheads admits everybody.
type bulkheads struct {
	places int64
	probe  func(ctx context.Context, sku string) error // waits for the row of a SKU, and keeps no lock
	turns  chan struct{}                               // one per probe that may run

	ctx    context.Context //nolint:containedctx // That of the probes.
	cancel context.CancelFunc
	probes sync.WaitGroup

	mu    sync.Mutex
	bySKU map[string]*bulkhead // guarded by mu; those that somebody uses
}

// bulkhead is guarded by bulkheads.mu, but for its places.
type bulkhead struct {
	free   *semaphore.Weighted
	users  int // who have a place, wait for one, or probe
	probed bool
	locked bool
}

// newBulkheads returns bulkheads with places for each SKU. Their probes outlive ctx, from which they take values only.
func newBulkheads(ctx context.Context, places int, probe func(ctx context.Context, sku string) error) *bulkheads {
	b := &bulkheads{places: int64(places), probe: probe, turns: make(chan struct{}, probers), bySKU: make(map[string]*bulkhead)}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return b
}

// close ends the probes.
func (b *bulkheads) close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.cancel() // no probe begins any more
	b.mu.Unlock()
	b.probes.Wait()
}

// use returns the bulkhead of sku, or [stock.ErrRowLocked].
func (b *bulkheads) use(sku string) (*bulkhead, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, ok := b.bySKU[sku]
	if !ok {
		h = &bulkhead{free: semaphore.NewWeighted(b.places)}
		b.bySKU[sku] = h
	}
	if h.locked {
		return nil, locked(sku)
	}
	h.users++
	return h, nil
}

func locked(sku string) error { return fmt.Errorf("%w: %q", stock.ErrRowLocked, sku) }

func (b *bulkheads) isLocked(h *bulkhead) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.locked
}

// unuse ends a use.
func (b *bulkheads) unuse(sku string, h *bulkhead) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(b.bySKU, sku)
	}
}

// placesError says that a transaction needs places at SKUs that it has none at.
type placesError struct{ skus []string }

func (e *placesError) Error() string { return fmt.Sprintf("sqlstore: no place at all of %q", e.skus) }

// places are those of one transaction.
type places struct {
	of   *bulkheads
	held map[string]*bulkhead
}

// at runs f with a place at each of skus. It blocks until there are places, or ctx ends; while it waits for a
// place it has none, so that a SKU that is crowded does not keep places of another one. f may find out that it needs
// others and ask [places.need] for them: if they are not free, f is run again once they were. It fails with
// [stock.ErrRowLocked] as long as the row of one of them is locked.
func (b *bulkheads) at(ctx context.Context, skus []string, f func(*places) error) error {
	p := &places{of: b}
	if b == nil {
		return f(p)
	}
	for {
		if err := p.enter(ctx, skus); err != nil {
			return err
		}
		err := f(p)
		if sqlerr.LockTimeout(err) {
			b.suspect(p.held)
		}
		p.leave()
		need, ok := errors.AsType[*placesError](err)
		if !ok {
			return err
		}
		skus = need.skus
	}
}

// enter waits until there is a place at each of skus.
func (p *places) enter(ctx context.Context, skus []string) error {
	for {
		missing, err := p.try(skus)
		if err != nil || missing == "" {
			return err
		}
		h, err := p.of.use(missing)
		if err != nil {
			return err
		}
		if h.free.Acquire(ctx, 1) != nil {
			p.of.unuse(missing, h)
			return context.Cause(ctx)
		}
		if p.held = map[string]*bulkhead{missing: h}; p.of.isLocked(h) { // meanwhile
			p.leave()
			return locked(missing)
		}
	}
}

// try takes a place at each of skus beside those that p has. If one of them has none, p has none at all afterwards.
func (p *places) try(skus []string) (missing string, err error) {
	for _, sku := range skus {
		if p.held[sku] != nil {
			continue
		}
		h, err := p.of.use(sku)
		if err != nil {
			p.leave()
			return "", err
		}
		if !h.free.TryAcquire(1) {
			p.of.unuse(sku, h)
			p.leave()
			return sku, nil
		}
		if p.held == nil {
			p.held = make(map[string]*bulkhead, len(skus))
		}
		p.held[sku] = h
	}
	return "", nil
}

// need makes sure that p has places at skus. Its error is for [bulkheads.at].
func (p *places) need(skus ...string) error {
	if p.of == nil {
		return nil
	}
	missing, err := p.try(skus)
	if err == nil && missing != "" {
		err = &placesError{skus}
	}
	return err
}

// leave gives the places back.
func (p *places) leave() {
	for sku, h := range p.held {
		h.free.Release(1)
		p.of.unuse(sku, h)
	}
	p.held = nil
}

// suspect has the rows of those SKUs probed that are not being probed.
func (b *bulkheads) suspect(held map[string]*bulkhead) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sku, h := range held {
		if h.probed || b.ctx.Err() != nil {
			continue
		}
		h.probed = true
		h.users++
		b.probes.Go(func() { b.watch(sku, h) })
	}
}

// watch probes the row of sku until it gets it, or fails for another reason, which those who write will find out.
func (b *bulkheads) watch(sku string, h *bulkhead) {
	defer b.unuse(sku, h)
	for again := true; again; pause(b.ctx, probePause) {
		select {
		case b.turns <- struct{}{}:
			again = sqlerr.LockTimeout(b.probe(b.ctx, sku))
			<-b.turns
		case <-b.ctx.Done():
			again = false
		}
		b.mu.Lock()
		h.locked, h.probed = again, again
		b.mu.Unlock()
	}
}
