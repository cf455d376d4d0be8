package bulkhead

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/stock"
)

const (
	// lookPause is how long rows that are locked are left alone at most between two looks.
	lookPause = 100 * time.Millisecond

	// lookLimit is for how long looks find a row neither free nor written to until it counts as locked. A request in line
	// waits that long, plus a lock timeout before it, which is less than its deadline.
	lookLimit = 3 * time.Second
)

// Look returns what is to be seen of skus without waiting.
type Look func(ctx context.Context, skus []string) (map[string]Sight, error)

// Sight is what a look shows of a SKU.
type Sight struct {
	Version int64
	Free    bool // nobody has a row of it locked
}

// suspicion is of a SKU whose row may be locked. It is guarded by Group.mu.
type suspicion struct {
	since   time.Time // of the first look; zero before it
	version int64     // at that look
	locked  bool
}

// Suspect admits no transaction to SKUs until it is known which of their rows are locked. A transaction that writes to
// these SKUs has waited in vain for a lock, perhaps that of one of these rows. It does not block.
//
// One goroutine polls all these rows on one connection. A row is not locked if it is free at the poll, or if its
// version has changed, as that of a hot row does. If polls find it neither free nor changed for [lookLimit], it is locked: all
// transactions of the SKU are refused, also the waiting ones, until a poll succeeds.
func (b *Group) Suspect(skus []string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, sku := range skus {
		if b.suspects[sku] != nil || b.ctx.Err() != nil {
			continue
		}
		if !b.watched {
			b.watched = true
			b.polls.Go(b.watch)
		}
		b.suspects[sku] = new(suspicion)
	}
}

// Suspects reports whether the row of one of skus may be locked. It does not block.
func (b *Group) Suspects(skus []string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(skus, func(sku string) bool { return b.suspects[sku] != nil })
}

// watch polls the suspects until there are none.
func (b *Group) watch() {
	for backoff.Jitter(b.ctx, lookPause) {
		b.mu.Lock()
		skus := slices.Sorted(maps.Keys(b.suspects))
		b.watched = len(skus) > 0
		b.mu.Unlock()
		if len(skus) == 0 {
			return
		}
		seen, err := b.look(b.ctx, skus)
		if err != nil {
			continue
		}
		b.mu.Lock()
		for sku, now := range seen {
			why := b.suspects[sku]
			switch {
			case why.since.IsZero() && !now.Free:
				why.since, why.version = time.Now(), now.Version
			case now.Free || why.version != now.Version:
				b.clear(sku)
			case time.Since(why.since) >= lookLimit:
				b.lock(sku)
			}
		}
		b.mu.Unlock()
	}
}

// lock turns the suspicion of sku into certainty, and refuses those in line. It is called with mu held.
func (b *Group) lock(sku string) {
	b.suspects[sku].locked = true
	if h, ok := b.bySKU[sku]; ok {
		for len(h.line) > 0 {
			b.dismiss(h.line[0], locked(sku))
		}
	}
}

// clear ends the suspicion of sku, and admits those in line. It is called with mu held.
func (b *Group) clear(sku string) {
	delete(b.suspects, sku)
	b.serve(sku)
}

// refusal returns [stock.ErrRowLocked] if the row of one of skus is locked. It is called with mu held.
func (b *Group) refusal(skus []string) error {
	for _, sku := range skus {
		if why := b.suspects[sku]; why != nil && why.locked {
			return locked(sku)
		}
	}
	return nil
}

func locked(sku string) error { return fmt.Errorf("%w: %q", stock.ErrRowLocked, sku) }
