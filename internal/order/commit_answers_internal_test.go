package order

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

// flaky is a store that commits, refuses old tokens, and fails by chance in every way that [Store] allows.
type flaky struct {
	Store

	mu       sync.Mutex
	stored   map[string]int    // by order: how often
	inside   map[string]bool   // orders in an open transaction
	accepted map[string]uint64 // by SKU: the greatest token
	faults   map[string]int    // by kind: how often
	t        *testing.T
}

// Commit implements [Store].
func (s *flaky) Commit(ctx context.Context, batches ...*Batch) error {
	s.enter(batches, true)
	defer s.enter(batches, false)
	switch n := rand.N(200); {
	case n == 0:
		time.Sleep(2 * longTransaction)
	case n < 100:
		time.Sleep(rand.N(2 * time.Millisecond))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return s.fault("ended", batches, context.Cause(ctx))
	}
	n := rand.N(100)
	switch {
	case n < 3:
		return s.fault("poison", batches, errPoison)
	case n < 6:
		return s.fault("fenced", batches, dlock.ErrFenced)
	case n < 8:
		return s.fault("unavailable", batches, stock.ErrUnavailable)
	case n < 11:
		return s.fault("nothing", batches, ErrOutcomeUnknown)
	case n < 13:
		s.faults["panic"]++
		for _, b := range batches {
			for _, r := range b.Requests {
				if r.Uncertain {
					return s.fault("", batches, errPoison)
				}
			}
		}
		panic("panic")
	}
	for _, b := range batches {
		if b.Err = s.refuse(b, len(batches)); b.Err == nil {
			s.store(b, n >= 16)
		}
	}
	if n < 16 {
		return s.fault("stored", batches, ErrOutcomeUnknown)
	}
	return nil
}

// enter fails the test if an order is in two transactions at once.
func (s *flaky) enter(batches []*Batch, inside bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range batches {
		for _, r := range b.Requests {
			if s.inside[r.Order.ID] == inside {
				s.t.Errorf("%s is in two transactions at once", r.Order.ID)
			}
			s.inside[r.Order.ID] = inside
		}
	}
}

// fault returns err as a store does that did not look whether uncertain orders exist.
func (s *flaky) fault(kind string, batches []*Batch, err error) error {
	s.faults[kind]++
	for _, b := range batches {
		for _, r := range b.Requests {
			if r.Uncertain && !r.Answered && !errors.Is(err, ErrOutcomeUnknown) {
				err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
			}
		}
	}
	for _, b := range batches {
		for _, r := range b.Requests {
			r.Uncertain = r.Uncertain || errors.Is(err, ErrOutcomeUnknown)
		}
	}
	return err
}

// refuse returns why nothing of b is stored, or nil. Those of its orders that are stored already are answered.
func (s *flaky) refuse(b *Batch, batches int) error {
	for _, r := range b.Requests {
		r.Answered = r.Answered || r.Uncertain && s.stored[r.Order.ID] > 0
	}
	for _, c := range b.Claims {
		if c.Fence.Token < s.accepted[c.SKU] {
			s.faults["stale"]++
			return &stock.FencedError{Refused: c, Accepted: dlock.Fence{Token: s.accepted[c.SKU]}}
		}
	}
	if batches > 1 && rand.N(20) == 0 {
		s.faults["alone"]++
		return ErrCommitAlone
	}
	for _, c := range b.Claims {
		s.accepted[c.SKU] = c.Fence.Token
	}
	return nil
}

// store stores the orders of b that have no answer, but refuses some.
func (s *flaky) store(b *Batch, answers bool) {
	for _, r := range b.Requests {
		switch {
		case r.Answered:
			continue
		case answers && rand.N(50) == 0:
			r.Err = &LimitError{}
		default:
			s.stored[r.Order.ID]++
		}
		r.Answered = answers
	}
}

// AwaitRows implements [Store]: the rows of a basket are free when it asks again.
func (*flaky) AwaitRows(context.Context, []string) error { return nil }

// Level implements [Store].
func (*flaky) Level(_ context.Context, sku string) (stock.Level, error) {
	return stock.Level{SKU: sku, OnHand: 1}, nil
}

// Under every fault, an order is stored once if its caller was told so, and not at all if its caller was told that it failed. It is never
// in two transactions at once, nor stored twice.
func TestEveryAnswerIsTrue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := memlock.New(memlock.Config{})
		s := &flaky{t: t, stored: make(map[string]int), inside: make(map[string]bool), accepted: make(map[string]uint64), faults: make(map[string]int)}
		var rigs []*rig
		for _, l := range []dlock.Locker{lock, lock, leader{lock}} {
			strategies := stock.NewStrategies(stock.Lockers{Redis: l})
			service := NewService(s, strategies, Config{})
			rigs = append(rigs, &rig{T: t, lock: lock, strategies: strategies, service: service, queue: service.queue})
		}
		const orders, callers = 6000, 60
		answers := make([]error, orders)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for n := i; n < orders; n += callers {
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(30*time.Millisecond))
					if n%3 == 0 {
						ctx = t.Context()
					}
					answers[n] = commitOne(ctx, rigs[rand.N(len(rigs))], n)
					cancel()
				}
			})
		}
		all.Wait()
		for _, r := range rigs {
			if err := r.service.Wait(t.Context()); err != nil { // the transactions of those who left end later
				t.Error(err)
			}
		}
		for _, r := range rigs { // which have the leases of all
			r.empty("a", "b", "redis/c")
		}
		s.compare(answers)
	})
}

// commitOne has order n committed, of one SKU or a basket, some with a maximum wait.
func commitOne(ctx context.Context, r *rig, n int) error {
	skus := [][]string{{"a"}, {"a"}, {"b"}, {"conditional/d"}, {"redis/c"}, {"a", "b"}, {"naive/e"}, {"for-update/f"}}[rand.N(8)]
	e := r.entry(ctx, fmt.Sprint(n), skus...)
	if rand.N(3) == 0 {
		e.lockBy = time.Now().Add(rand.N(100 * time.Millisecond))
	}
	return r.service.admit(*e, false)
}

// compare fails the test unless answers are true.
func (s *flaky) compare(answers []error) {
	done, unknown := 0, 0
	for n, err := range answers {
		stored := s.stored[fmt.Sprint(n)]
		switch {
		case errors.Is(err, ErrOutcomeUnknown):
			unknown++
			if stored > 1 {
				s.t.Errorf("%d is stored %d times", n, stored)
			}
		case err == nil:
			done++
			if stored != 1 {
				s.t.Errorf("%d was accepted and is stored %d times", n, stored)
			}
		case stored != 0:
			s.t.Errorf("%d is stored %d times: %v", n, stored, err)
		}
	}
	s.t.Logf("%d of %d accepted, %d unknown; %v", done, len(answers), unknown, s.faults)
	if done < len(answers)/4 || unknown > len(answers)/4 {
		s.t.Error("few orders have the answer that they could have")
	}
	for _, kind := range []string{"ended", "poison", "fenced", "unavailable", "nothing", "panic", "stored", "alone"} {
		if s.faults[kind] == 0 {
			s.t.Errorf("no fault %q", kind)
		}
	}
}
