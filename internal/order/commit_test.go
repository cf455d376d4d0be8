package order_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// refusing is a lock that fails n times, and holds nothing.
func refusing(n int64, err error) stock.Lock {
	var calls atomic.Int64
	return func(ctx context.Context, _ string) (stock.Held, error) {
		if calls.Add(1) <= n {
			return stock.Held{}, fmt.Errorf("try %d: %w", calls.Load(), err)
		}
		return stock.Held{Context: ctx, Release: func() {}}, nil
	}
}

// Losing the race is no answer to a customer: the attempt is made again.
func TestLostRacesAreRepeated(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		for _, reason := range []error{dlock.ErrFenced, dlock.ErrLost, stock.ErrConflict} {
			received := new(retries)
			s := stock.Strategy{Cohort: cohort, Name: "flaky", Lock: refusing(3, reason), Update: stock.Conditional}
			svc, store := setup(t, s, order.Config{Observer: received})
			if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a")}); err != nil {
				t.Errorf("%v: %v", reason, err)
			}
			if len(received.reasons) != 3 || !errors.Is(received.reasons[0], reason) || received.placed != 1 {
				t.Errorf("%v: received %v, placed %d", reason, received.reasons, received.placed)
			}
			exact(t, store, "a", 1)
		}
	})
}

// They are repeated until the deadline and no longer.
func TestLostRacesEndWithTheDeadline(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		s := stock.Strategy{Cohort: cohort, Name: "hopeless", Lock: refusing(1<<60, dlock.ErrFenced), Update: stock.Conditional}
		svc, store := setup(t, s, order.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")}); !errors.Is(err, stock.ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
		exact(t, store, "a", 0)
	})
}

// A lock service that issues lower fencing tokens than the row has accepted has lost its counter. Each order raises the
// counter until it has passed the row. If that would take longer than the orders have, they end at once.
func TestLowFences(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		for name, c := range map[string]struct {
			accepted uint64
			want     error
		}{
			"near": {30, nil},
			"far":  {1 << 40, stock.ErrFencesLost},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var count atomic.Uint64
				s := stock.Strategy{Cohort: cohort, Name: "emptied", Update: stock.Fenced, Lock: func(ctx context.Context, _ string) (stock.Held, error) {
					return stock.Held{Context: ctx, Fence: dlock.Fence{Token: count.Add(1), Owner: "me"}, Release: func() {}}, nil
				}}
				svc, store := setup(t, s, order.Config{})
				before := stock.Claim{SKU: "a", Update: stock.Fenced, Fence: dlock.Fence{Token: c.accepted, Owner: "before"}}
				r := &order.Request{Order: order.Order{ID: order.NewID(), CustomerID: "c1", Items: units(1, "a")}, TTL: time.Hour}
				if err := store.Commit(t.Context(), &order.Batch{Claims: []stock.Claim{before}, Requests: []*order.Request{r}}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a far deadline
				defer cancel()
				_, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")})
				if !errors.Is(err, c.want) || ctx.Err() != nil {
					t.Errorf("%v; %v", err, ctx.Err())
				}
				if c.want == nil {
					exact(t, store, "a", 2)
					return
				}
				exact(t, store, "a", 1)
				if text := fmt.Sprintf("with %d,", count.Load()); !errors.Is(err, stock.ErrBusy) || !strings.Contains(err.Error(), text) {
					t.Errorf("%v: want the fence that was refused: %s", err, text)
				}
			})
		}
	})
}

// A lock service that does not answer is not asked again and again.
func TestLockServiceAway(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		s := stock.Strategy{Cohort: cohort, Name: "away", Lock: refusing(1<<60, errors.New("connection refused")), Update: stock.Conditional}
		svc, store := setup(t, s, order.Config{})
		if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a")}); !errors.Is(err, stock.ErrUnavailable) {
			t.Errorf("%v, want ErrUnavailable", err)
		}
		exact(t, store, "a", 0)
	})
}

// A lock service that fails when the time of the order is over is away all the same, whatever it says.
func TestLockServiceAwayAtTheDeadline(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		late := func(ctx context.Context, _ string) (stock.Held, error) {
			<-ctx.Done()
			return stock.Held{}, errors.New("connection refused")
		}
		s := stock.Strategy{Cohort: cohort, Name: "late", Lock: late, Update: stock.Conditional}
		svc, store := setup(t, s, order.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")}); !errors.Is(err, stock.ErrUnavailable) && !errors.Is(err, stock.ErrBusy) {
			t.Errorf("%v, want ErrUnavailable or ErrBusy", err)
		}
		exact(t, store, "a", 0)
	})
}

// absent is a lock service that is known to be away, and counts who asks for it all the same.
type absent struct{ *dlocktest.Faulty }

func (absent) Unavailable() error { return errors.New("connection refused") }

// A basket that needs a lock service which is known to be away takes no lock of its other SKUs.
func TestLockServiceKnownToBeAway(t *testing.T) {
	t.Parallel()
	gone := absent{&dlocktest.Faulty{Locker: memlock.New(memlock.Config{})}}
	here := &dlocktest.Faulty{Locker: memlock.New(memlock.Config{})}
	st, err := stock.NewStrategies(stock.Lockers{Etcd: gone, Redis: here}).Lookup("redis")
	if err != nil {
		t.Fatal(err)
	}
	_, store := setup(t, st, order.Config{})
	if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: "z", Strategy: "etcd", OnHand: 10}); err != nil {
		t.Fatal(err)
	}
	svc := order.NewService(store, stock.NewStrategies(stock.Lockers{Etcd: gone}).With(st), order.Config{})
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a", "z")}); !errors.Is(err, stock.ErrLockAway) || !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("%v, want ErrLockAway", err)
	}
	if here.Calls.Load() != 0 || gone.Calls.Load() != 0 {
		t.Errorf("asked for %d locks of the other SKU, and for %d of the service that does not respond", here.Calls.Load(), gone.Calls.Load())
	}
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a")}); err != nil || here.Calls.Load() != 1 {
		t.Errorf("the other SKU alone: %v", err)
	}
	exact(t, store, "a", 1)
}

// raising is a lock service whose counter can be raised. It notes by how much.
type raising struct {
	dlock.Locker
	least atomic.Uint64
}

func (r *raising) RaiseCounter(_ context.Context, _ string, atLeast uint64) error {
	r.least.Store(atLeast)
	return nil
}

// If a row refuses a fence, the lock service is to raise its counter above the fence that the row has accepted.
func TestRefusedFenceRaisesTheCounter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"redlock", "redlock-cohort"} {
		l := &raising{Locker: memlock.New(memlock.Config{})}
		st, err := stock.NewStrategies(stock.Lockers{Redlock: l}).Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		svc, store := setup(t, st, order.Config{})
		before := stock.Claim{SKU: "a", Update: stock.Fenced, Fence: dlock.Fence{Token: 1 << 62, Owner: "before"}}
		r := &order.Request{Order: order.Order{ID: order.NewID(), CustomerID: "c1", Items: units(1, "a")}, TTL: time.Hour}
		if err := store.Commit(t.Context(), &order.Batch{Claims: []stock.Claim{before}, Requests: []*order.Request{r}}); err != nil {
			t.Fatal(err)
		}
		for wait := 200 * time.Millisecond; l.least.Load() == 0 && wait < time.Minute; wait *= 2 { // a busy machine needs longer
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			if _, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")}); !errors.Is(err, stock.ErrBusy) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		if n := l.least.Load(); n != 1<<62 {
			t.Errorf("%s: raised to %d", name, n)
		}
		exact(t, store, "a", 1)
	}
}
