// Package bulkhead decides which transactions may wait for which rows, so that a locked or hot row takes no
// connections from other rows.
//
// Payments, restocks, expiries and orders that are committed alone all have their places in one [Group].
package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"example.com/shop/internal/platform/sqldb"
)

// Group keeps a SKU whose row is locked, or wanted by many, from using up the connections. Per SKU a process has
// a bounded number of places for those who write to its row. A transaction that finds them taken waits without a
// connection, in the lines of all SKUs that it lacks. It gets all of its places at once.
//
// The age of a transaction decides at each SKU, after payments. While somebody waits at a SKU, its last free place is for the first in line.
// So the oldest waiter gets its places as soon as each of its SKUs has had a free one. No transaction holds a place
// while it waits for another one, so there is no deadlock. A basket that waits for one SKU keeps at most one place of
// another SKU unused. A nil *Group admits all transactions.
//
// A SKU whose row may be locked admits nobody, and one whose row is locked refuses them; see [Group.Suspect].
type Group struct {
	places int // per SKU; at least 2, as one may be kept for a basket
	look   Look
	ctx    context.Context //nolint:containedctx // That of looks.
	cancel context.CancelFunc
	polls  sync.WaitGroup

	mu       sync.Mutex
	bySKU    map[string]*bulkhead  // SKUs at which somebody has a place, or is in line
	suspects map[string]*suspicion // SKUs whose rows may be locked
	watched  bool                  // a goroutine polls them
}

// bulkhead is guarded by Group.mu.
type bulkhead struct {
	free int
	line []*Places // the oldest first
}

// New returns a Group with places for each SKU. Its polls outlive ctx, from which they take values only.
func New(ctx context.Context, places int, look Look) *Group {
	b := &Group{
		places: places, look: look,
		bySKU: make(map[string]*bulkhead), suspects: make(map[string]*suspicion),
	}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return b
}

// Close ends the polls.
func (b *Group) Close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.cancel() // no poll begins any more
	b.mu.Unlock()
	b.polls.Wait()
}

// placesError says that a transaction needs places at SKUs that it has none at.
type placesError struct{ skus []string }

func (e *placesError) Error() string { return fmt.Sprintf("bulkhead: no place at all of %q", e.skus) }

// Places are those of one transaction.
type Places struct {
	of *Group

	// Guarded by of.mu.
	held   []string   // SKUs
	wanted []string   // SKUs at which it is in line
	ahead  bool       // of those that are not
	ready  chan error // ends its wait
}

// Do runs f with a place at each of skus. It blocks until there are places, or ctx ends. f may find out that it needs
// others and ask [Places.Need] for them: if they are not free, f is run again once they were. It is ahead of others in the lines then. So a
// payment, which learns from its order what it needs, goes before purchases. Do fails with [stock.ErrRowLocked] as long as the row of
// one of the SKUs is locked.
func (b *Group) Do(ctx context.Context, skus []string, f func(*Places) error) error {
	p := &Places{of: b}
	if b == nil {
		return f(p)
	}
	defer p.leave()
	for ahead := false; ; ahead = true {
		if err := p.enter(ctx, skus, ahead); err != nil {
			return err
		}
		err := f(p)
		if err == nil {
			return nil
		}
		need, more := errors.AsType[*placesError](err)
		switch {
		case sqldb.Is(err, sqldb.RowLocked):
			b.Suspect(p.held)
			return err
		case !more:
			return err
		}
		p.leave()
		skus = need.skus
	}
}

// enter waits until there is a place at each of skus.
func (p *Places) enter(ctx context.Context, skus []string, ahead bool) error {
	b := p.of
	b.mu.Lock()
	if b.admit(p, skus) {
		b.mu.Unlock()
		return nil
	}
	if err := b.refusal(skus); err != nil {
		b.mu.Unlock()
		return err
	}
	p.wanted, p.ahead, p.ready = skus, ahead, make(chan error, 1)
	for _, sku := range skus {
		h := b.bulkhead(sku)
		end := len(h.line)
		if first := slices.IndexFunc(h.line, func(o *Places) bool { return !o.ahead }); ahead && first >= 0 {
			end = first
		}
		h.line = slices.Insert(h.line, end, p)
	}
	b.mu.Unlock()
	select {
	case err := <-p.ready:
		return err
	case <-ctx.Done():
		b.mu.Lock()
		b.dismiss(p, context.Cause(ctx))
		b.mu.Unlock()
		return <-p.ready // it may have been admitted meanwhile
	}
}

// Need makes sure that p has places at skus. Its error is for [Group.Do].
func (p *Places) Need(skus ...string) error {
	b := p.of
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	more := slices.DeleteFunc(slices.Clone(skus), func(sku string) bool { return slices.Contains(p.held, sku) })
	if err := b.refusal(more); err != nil {
		return err
	}
	if !b.admit(p, more) {
		return &placesError{slices.Concat(p.held, more)}
	}
	return nil
}

// leave gives the places back.
func (p *Places) leave() {
	b := p.of
	b.mu.Lock()
	defer b.mu.Unlock()
	held := p.held
	p.held = nil
	for _, sku := range held {
		b.bySKU[sku].free++
	}
	for _, sku := range held {
		b.serve(sku)
	}
}

// The following are called with mu held.

func (b *Group) bulkhead(sku string) *bulkhead {
	h, ok := b.bySKU[sku]
	if !ok {
		h = &bulkhead{free: b.places}
		b.bySKU[sku] = h
	}
	return h
}

// admit gives p a place at each of skus, or none and reports false. The last one is for the oldest in line.
func (b *Group) admit(p *Places, skus []string) bool {
	for _, sku := range skus {
		h, used := b.bySKU[sku]
		if b.suspects[sku] != nil || used && (h.free == 0 || h.free == 1 && len(h.line) > 0 && h.line[0] != p) {
			return false
		}
	}
	for _, sku := range skus {
		b.bulkhead(sku).free--
	}
	p.held = append(p.held, skus...)
	return true
}

// serve admits those in line at sku whom places are free for, the oldest first.
func (b *Group) serve(sku string) {
	h, ok := b.bySKU[sku]
	if !ok {
		return
	}
	for i := 0; i < len(h.line) && h.free > 0; {
		p := h.line[i]
		if !b.admit(p, p.wanted) {
			i++
			continue
		}
		b.dismiss(p, nil) // the line is shorter now
	}
	if h.free == b.places && len(h.line) == 0 {
		delete(b.bySKU, sku)
	}
}

// dismiss takes p out of its lines, if it is in line, and ends its wait with err. Places that were kept for it
// serve others, unless it has them.
func (b *Group) dismiss(p *Places, err error) {
	wanted := p.wanted
	if wanted == nil {
		return
	}
	p.wanted = nil
	for _, sku := range wanted {
		h := b.bySKU[sku]
		h.line = slices.DeleteFunc(h.line, func(o *Places) bool { return o == p })
	}
	p.ready <- err
	if err == nil {
		return
	}
	for _, sku := range wanted {
		b.serve(sku)
	}
}
