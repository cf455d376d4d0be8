package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// batches is a store that counts what is committed together, and forgets the outcome of
// some commits.
type batches struct {
	order.Store
	forget  atomic.Int64
	largest atomic.Int64
}

func (b *batches) Commit(ctx context.Context, group ...*order.Batch) error {
	err := b.Store.Commit(ctx, group...)
	for _, one := range group {
		b.largest.Store(max(b.largest.Load(), int64(len(one.Requests))))
	}
	if err != nil || b.forget.Add(-1) < 0 {
		return err
	}
	for _, b := range group {
		for _, r := range b.Requests {
			r.Answered, r.Uncertain, r.Err = false, true, nil
		}
	}
	return order.ErrOutcomeUnknown
}

// barred is a counter that lets nobody take anything before it is opened.
type barred struct {
	stock.Counter

	open chan struct{}
}

func (g barred) Take(ctx context.Context, sku string, wanted []int64) (stock.Hold, error) {
	select {
	case <-g.open:
		return g.Counter.Take(ctx, sku, wanted)
	case <-ctx.Done():
		return stock.Hold{}, context.Cause(ctx)
	}
}

// sharing are strategies that commit orders together, one of each kind.
func sharing(t *testing.T, f func(t *testing.T, strategy string)) {
	t.Helper()
	for _, strategy := range []string{"redis-cohort", "lua"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			f(t, strategy)
		})
	}
}

// atOnce places, in one batch, an order of one unit of the SKU a for each key, which may be empty. It returns their
// errors.
func atOnce(t *testing.T, store order.Store, keys ...string) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	lock, units := memlock.New(memlock.Config{}), barred{counter(t), make(chan struct{})}
	b, ok := store.(*batches)
	if !ok {
		b = &batches{Store: store}
	}
	svc := order.NewService(b, stock.NewStrategies(stock.Lockers{Redis: lock, Units: units}), order.Config{})
	lease, err := lock.Acquire(ctx, stock.LockKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(keys))
	var callers, begun sync.WaitGroup
	begun.Add(len(keys))
	for i, key := range keys {
		p := order.Purchase{Customer: fmt.Sprint("c", i), Items: []order.Item{{SKU: "a", Quantity: 1}}}
		if key != "" {
			p.Key = keyed("POST /orders", key, "one unit")
		}
		callers.Go(func() {
			begun.Done()
			_, errs[i] = svc.Place(ctx, p)
		})
	}
	begun.Wait()
	time.AfterFunc(100*time.Millisecond, func() { // they need not all be there, but most
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
		close(units.open)
	})
	callers.Wait()
	if err := svc.Wait(ctx); err != nil {
		t.Error(err)
	}
	if b.largest.Load() < 2 {
		t.Fatal("nothing was committed together")
	}
	return errs
}

// granted returns how many of errs are nil, and fails the test if one is not of want.
func granted(t *testing.T, errs []error, want func(error) bool) (n int64) {
	t.Helper()
	for i, err := range errs {
		switch {
		case err == nil:
			n++
		case !want(err):
			t.Errorf("%d: %v", i, err)
		}
	}
	return n
}

func isShort(err error) bool {
	_, ok := errors.AsType[*stock.ShortageError](err)
	return ok
}

// A batch with an unknown outcome was committed. Each of its orders is found, though the batch itself took the last
// units.
func TestBatchOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	sharing(t, func(t *testing.T, strategy string) {
		engines(t, func(t *testing.T, url string) {
			s := open(t, url, "one")
			create(t, s, "a", strategy, 5)
			b := &batches{Store: s}
			b.forget.Store(2)
			if n := granted(t, atOnce(t, b, make([]string, 12)...), isShort); n != 5 || b.forget.Load() >= 0 {
				t.Errorf("%d were accepted, want 5", n)
			}
			if a := auditOf(t, s, "a"); !a.OK() || a.Open != 5 {
				t.Errorf("%+v %q", a, a.Broken())
			}
		})
	})
}

// An order that cannot be stored fails alone.
func TestABadOrderFailsAlone(t *testing.T) {
	t.Parallel()
	sharing(t, func(t *testing.T, strategy string) {
		engines(t, func(t *testing.T, url string) {
			s := open(t, url, "one")
			create(t, s, "a", strategy, 50)
			keys := make([]string, 20)
			keys[7] = strings.Repeat("k", idempotency.MaxKey+1)
			errs := atOnce(t, s, keys...)
			if errs[7] == nil || !strings.Contains(errs[7].Error(), "sqlstore") {
				t.Errorf("the bad one: %v", errs[7])
			}
			errs[7] = nil
			if n := granted(t, errs, func(error) bool { return false }); n != 20 {
				t.Errorf("%d of the others", n-1)
			}
			if a := auditOf(t, s, "a"); !a.OK() || a.Open != 19 {
				t.Errorf("%+v %q", a, a.Broken())
			}
		})
	})
}

// The reply to the COMMIT of a batch is lost. Its orders are placed once, and those without a unit are refused.
func TestLostReplyToTheCommitOfABatch(t *testing.T) {
	t.Parallel()
	sharing(t, func(t *testing.T, strategy string) {
		s, proxy := proxied(t)
		create(t, s, "a", strategy, 5)
		proxy.DropReply("\x03COMMIT") // the command, and not a new session's READ-COMMITTED
		if n := granted(t, atOnce(t, s, make([]string, 12)...), isShort); n != 5 {
			t.Errorf("%d were accepted, want 5", n)
		}
		if n := proxy.Dropped(); n != 1 {
			t.Fatalf("%d replies were dropped, want 1", n)
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 5 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

// Two orders are in a batch that waits for a locked row. At its deadline one order is answered with an unknown outcome,
// although the batch continues for the other. The same key returns the outcome later.
func TestOrderLeavesItsBatchAtItsDeadline(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		raw := new(handle)
		s := open(t, testbedtest.Database(t), "one", raw)
		create(t, s, "a", "redis-cohort", 10)
		lock := memlock.New(memlock.Config{})
		svc := order.NewService(s, stock.NewStrategies(stock.Lockers{Redis: lock}), order.Config{})
		lease, err := lock.Acquire(t.Context(), stock.LockKey("a"))
		if err != nil {
			t.Fatal(err)
		}
		unlock := lockRow(t, raw.db, "SELECT * FROM skus WHERE sku = 'a'")
		const patience = 1500 * time.Millisecond
		hurried, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		key := keyed("POST /orders", "k", "one unit")
		place := func(ctx context.Context, customer string, once *idempotency.Request) (order.Order, error) {
			return svc.Place(ctx, order.Purchase{Customer: customer, Key: once, Items: []order.Item{{SKU: "a", Quantity: 1}}})
		}
		began, late := time.Now(), make(chan time.Duration, 1)
		var hurriedErr, otherErr error
		var callers sync.WaitGroup
		callers.Go(func() {
			_, hurriedErr = place(hurried, "hurried", key)
			late <- time.Since(began) - patience
		})
		callers.Go(func() { _, otherErr = place(t.Context(), "other", nil) })
		time.AfterFunc(patience/3, func() { // both wait for the lease by then
			if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		if d := <-late; d > patience/3 {
			t.Errorf("the answer came %v after the deadline", d)
		}
		unlock()
		callers.Wait()
		if err := svc.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if !errors.Is(hurriedErr, order.ErrOutcomeUnknown) || otherErr != nil {
			t.Fatalf("the answers are %v and %v", hurriedErr, otherErr)
		}
		_, err = place(t.Context(), "hurried", key)
		if _, ok := errors.AsType[*idempotency.AnsweredError](err); !ok {
			t.Errorf("the same key again: %v", err)
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 2 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}
