package order_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

func fired(ids ...string) []timeout.Fired {
	batch := make([]timeout.Fired, len(ids))
	for i, id := range ids {
		batch[i] = timeout.Fired{ID: id, Due: time.Now()}
	}
	return batch
}

// The orders decide what becomes of their timers, one by one.
func TestExpireAnswersForEveryTimer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	svc, store := setup(t, conditional(t), order.Config{TTL: time.Hour})
	soon := order.NewService(store, stock.NewStrategies(stock.Lockers{}), order.Config{TTL: time.Nanosecond})
	place := func(svc *order.Service) order.Order {
		o, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	expired, waiting, paid := place(soon), place(svc), place(svc)
	if _, err := svc.Pay(ctx, order.Target{ID: paid.ID}, "p1"); err != nil {
		t.Fatal(err)
	}
	want := []timeout.Outcome{
		timeout.Committed(), timeout.NotDue(waiting.Timer().Due), timeout.Done(), timeout.Done(), timeout.Committed(),
	}
	for range 2 { // a timer may fire again
		got, err := svc.Expire(ctx, fired(expired.ID, waiting.ID, order.NewID(), "no order at all", paid.ID))
		if err != nil || len(got) != len(want) {
			t.Fatal(got, err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("timer %d: %+v, want %+v", i, got[i], want[i])
			}
		}
		exact(t, store, "a", 2)
	}
}

// broken is a store whose Expire and Extend fail.
type broken struct {
	order.Store
	err error
}

func (b broken) Expire(context.Context, []string) ([]order.Expiry, error) { return nil, b.err }

func (b broken) Extend(context.Context, order.Target, time.Duration, time.Duration) (order.Order, bool, error) {
	return order.Order{}, false, b.err
}

// found is a store whose Expire finds that.
type found struct {
	order.Store
	expiries []order.Expiry
}

func (f found) Expire(context.Context, []string) ([]order.Expiry, error) { return f.expiries, nil }

// A store that does not answer is no timer's fault, and neither is a lock that somebody else holds.
// An order that fails may be one's.
func TestExpireTellsWhoseFaultItIs(t *testing.T) {
	t.Parallel()
	for err, away := range map[error]bool{
		stock.ErrUnavailable: true, order.ErrOutcomeUnknown: true, stock.ErrNotFound: false,
	} {
		svc := order.NewService(broken{err: fmt.Errorf("expire: %w", err)}, stock.NewStrategies(stock.Lockers{}), order.Config{})
		_, got := svc.Expire(t.Context(), fired("x"))
		if !errors.Is(got, err) || errors.Is(got, timeout.ErrUnavailable) != away {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestExpiryOfABusyOrderIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]order.Store{
		"store": broken{err: fmt.Errorf("expire: %w", stock.ErrBusy)},
		"order": found{expiries: []order.Expiry{{Again: time.Second}, {Again: time.Millisecond}, {Status: order.Expired}}},
	} {
		svc := order.NewService(store, stock.NewStrategies(stock.Lockers{}), order.Config{})
		got, err := svc.Expire(t.Context(), fired("x", "y", "z"))
		want := map[string][]timeout.Outcome{
			"store": {timeout.Again(time.Second), timeout.Again(time.Second), timeout.Again(time.Second)},
			"order": {timeout.Again(time.Second), timeout.Again(time.Millisecond), timeout.Committed()},
		}[name]
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}

// An expiry that is long overdue is tried less often.
func TestExpiryOfALongBusyOrderIsTriedLessOften(t *testing.T) {
	t.Parallel()
	svc := order.NewService(found{expiries: []order.Expiry{{Again: time.Second}, {Again: time.Second}}}, stock.NewStrategies(stock.Lockers{}), order.Config{})
	batch := fired("x", "y")
	batch[1].Due = time.Now().Add(-time.Minute)
	got, err := svc.Expire(t.Context(), batch)
	if want := []timeout.Outcome{timeout.Again(time.Second), timeout.Again(5 * time.Second)}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// Timers are due at a whole millisecond: when the order expires, or just after.
func TestTimersAreNeverEarly(t *testing.T) {
	t.Parallel()
	start := time.UnixMicro(1_763_636_400_000_000)
	for micro, want := range map[int]int64{0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2} {
		o := order.Order{ID: "x", ExpiresAt: start.Add(time.Duration(micro) * time.Microsecond)}
		got := o.Timer()
		if got.Due.UnixMilli()-start.UnixMilli() != want || got.Due.Before(o.ExpiresAt) || got.ID != "x" || got.Kind != order.ExpireTimer {
			t.Errorf("%d µs: %+v", micro, got)
		}
	}
}

func TestExtendIsBounded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	svc, _ := setup(t, conditional(t), order.Config{TTL: time.Hour})
	o, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{0, -time.Second, 3*time.Hour + 1, 4*time.Hour + 1, 1 << 62} {
		if _, err := svc.Extend(ctx, order.Target{ID: o.ID}, by); !errors.Is(err, order.ErrInvalid) {
			t.Errorf("by %v: %v, want ErrInvalid", by, err)
		}
	}
	got, err := svc.Extend(ctx, order.Target{ID: o.ID}, 3*time.Hour) // four hours in all
	if err != nil || !got.ExpiresAt.Equal(o.ExpiresAt.Add(3*time.Hour)) {
		t.Errorf("%v, %v", got.ExpiresAt, err)
	}
	if _, err := svc.Extend(ctx, order.Target{ID: o.ID}, 1); !errors.Is(err, order.ErrInvalid) {
		t.Errorf("more than four times its life: %v, want ErrInvalid", err)
	}
	if _, err := svc.Extend(ctx, order.Target{ID: order.NewID()}, time.Second); !errors.Is(err, order.ErrNotFound) {
		t.Error(err)
	}
	if _, err := svc.Cancel(ctx, order.Target{ID: o.ID}); err != nil {
		t.Fatal(err)
	}
	_, err = svc.Extend(ctx, order.Target{ID: o.ID}, time.Second)
	if e, ok := errors.AsType[*order.StateError](err); !ok || e.Order.Status != order.Cancelled {
		t.Errorf("a cancelled order: %v", err)
	}
}
