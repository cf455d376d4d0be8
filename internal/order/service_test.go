package order_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// retries counts what an observer hears.
type retries struct {
	mu      sync.Mutex
	reasons []error // guarded by mu
	placed  int     // guarded by mu
}

func (r *retries) Placed(context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placed++
}

func (r *retries) Retried(_ context.Context, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = append(r.reasons, reason)
}

// setup returns a service on SQLite whose SKUs a and b have ten units each, sold
// by the strategy.
func setup(t *testing.T, s stock.Strategy, c order.Config) (*order.Service, *sqlstore.Store) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "shop.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, sku := range []string{"a", "b"} {
		if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: s.Name, OnHand: 10}); err != nil {
			t.Fatal(err)
		}
	}
	return order.NewService(store, stock.NewStrategies(stock.Lockers{}).With(s), c), store
}

// bothWays runs f for orders that are committed one by one, and for those that are committed
// together.
func bothWays(t *testing.T, f func(t *testing.T, cohort bool)) {
	t.Helper()
	for _, cohort := range []bool{false, true} {
		t.Run(map[bool]string{false: "alone", true: "cohort"}[cohort], func(t *testing.T) {
			t.Parallel()
			f(t, cohort)
		})
	}
}

func conditional(t *testing.T) stock.Strategy {
	t.Helper()
	s, err := stock.NewStrategies(stock.Lockers{}).Lookup("conditional")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func units(quantity int64, skus ...string) []order.Item {
	var items []order.Item
	for _, sku := range skus {
		items = append(items, order.Item{SKU: sku, Quantity: quantity})
	}
	return items
}

// exact fails the test unless the books are in order with so many units of sku
// accepted.
func exact(t *testing.T, store *sqlstore.Store, sku string, accepted int64) {
	t.Helper()
	audits, err := store.Audit(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Accepted() != accepted {
		t.Errorf("%s: %d accepted, want %d: %+v %q", sku, a.Accepted(), accepted, a, a.Broken())
	}
}

func TestPlaceMergesAndSortsLines(t *testing.T) {
	t.Parallel()
	svc, store := setup(t, conditional(t), order.Config{TTL: time.Hour})
	o, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(3, "b", "a", "b")})
	if err != nil {
		t.Fatal(err)
	}
	want := []order.Item{{SKU: "a", Quantity: 3}, {SKU: "b", Quantity: 6}}
	if diff := cmp.Diff(want, o.Items); diff != "" {
		t.Error(diff)
	}
	if d := o.ExpiresAt.Sub(o.CreatedAt); d != time.Hour || o.Status != order.Pending {
		t.Errorf("%s for %v", o.Status, d)
	}
	// Each line alone would fit; their sum does not.
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(3, "b", "b")}); !isShort(err) {
		t.Errorf("six of four: %v", err)
	}
	exact(t, store, "b", 6)
}

func isShort(err error) bool {
	_, ok := errors.AsType[*stock.ShortageError](err)
	return ok
}

func TestBadOrdersChangeNothing(t *testing.T) {
	t.Parallel()
	svc, store := setup(t, conditional(t), order.Config{})
	many := make([]order.Item, order.MaxItems+1)
	for i := range many {
		many[i] = order.Item{SKU: "a", Quantity: 1}
	}
	for name, c := range map[string]struct {
		customer string
		items    []order.Item
		want     error
	}{
		"no customer":                  {"", units(1, "a"), order.ErrInvalid},
		"bad customer":                 {"a b", units(1, "a"), order.ErrInvalid},
		"long customer":                {strings.Repeat("x", 65), units(1, "a"), order.ErrInvalid},
		"no items":                     {"c1", nil, order.ErrInvalid},
		"too many items":               {"c1", many, order.ErrInvalid},
		"zero":                         {"c1", units(0, "a"), order.ErrInvalid},
		"negative":                     {"c1", units(-1, "a"), order.ErrInvalid},
		"negative line beside another": {"c1", []order.Item{{SKU: "a", Quantity: 5}, {SKU: "a", Quantity: -4}}, order.ErrInvalid},
		"too many units":               {"c1", units(stock.MaxQuantity+1, "a"), order.ErrInvalid},
		"too many units in all":        {"c1", units(stock.MaxQuantity, "a", "a"), order.ErrInvalid},
		"bad SKU":                      {"c1", units(1, "a b"), order.ErrInvalid},
		"unknown SKU":                  {"c1", units(1, "a", "zzz"), order.ErrUnknownSKU},
	} {
		if _, err := svc.Place(t.Context(), order.Purchase{Customer: c.customer, Items: c.items}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	exact(t, store, "a", 0)
}

// refusing is a guard that fails n times, and holds nothing.
func refusing(n int64, err error) stock.Guard {
	var calls atomic.Int64
	return func(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
		if calls.Add(1) <= n {
			return fmt.Errorf("try %d: %w", calls.Load(), err)
		}
		return fn(ctx, dlock.Fence{})
	}
}

// Losing the race is no answer to a customer: the attempt is made again.
func TestLostRacesAreRepeated(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		for _, reason := range []error{dlock.ErrFenced, dlock.ErrLost, stock.ErrConflict} {
			heard := new(retries)
			s := stock.Strategy{Cohort: cohort, Name: "flaky", Guard: refusing(3, reason), Write: stock.Conditional}
			svc, store := setup(t, s, order.Config{Observer: heard})
			if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a")}); err != nil {
				t.Errorf("%v: %v", reason, err)
			}
			if len(heard.reasons) != 3 || !errors.Is(heard.reasons[0], reason) || heard.placed != 1 {
				t.Errorf("%v: heard %v, placed %d", reason, heard.reasons, heard.placed)
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
		s := stock.Strategy{Cohort: cohort, Name: "hopeless", Guard: refusing(1<<60, dlock.ErrFenced), Write: stock.Conditional}
		svc, store := setup(t, s, order.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")}); !errors.Is(err, stock.ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
		exact(t, store, "a", 0)
	})
}

// A lock service that gives lower fences than the row has accepted counts anew. Orders make it count,
// until it has passed the row; where that would take longer than they have, they end at once.
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
				s := stock.Strategy{Cohort: cohort, Name: "emptied", Write: stock.Fenced, Guard: func(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
					return fn(ctx, dlock.Fence{Token: count.Add(1), Owner: "me"})
				}}
				svc, store := setup(t, s, order.Config{})
				before := stock.Claim{SKU: "a", Write: stock.Fenced, Fence: dlock.Fence{Token: c.accepted, Owner: "before"}}
				r := &order.Request{Order: order.Order{ID: order.NewID(), CustomerID: "c1", Items: units(1, "a")}, TTL: time.Hour}
				if err := store.Commit(t.Context(), []stock.Claim{before}, []*order.Request{r}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // which it looks at, to tell near from far
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
		s := stock.Strategy{Cohort: cohort, Name: "away", Guard: refusing(1<<60, errors.New("connection refused")), Write: stock.Conditional}
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
		late := func(ctx context.Context, _ string, _ func(context.Context, dlock.Fence) error) error {
			<-ctx.Done()
			return errors.New("connection refused")
		}
		s := stock.Strategy{Cohort: cohort, Name: "late", Guard: late, Write: stock.Conditional}
		svc, store := setup(t, s, order.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")}); !errors.Is(err, stock.ErrUnavailable) && !errors.Is(err, stock.ErrBusy) {
			t.Errorf("%v, want ErrUnavailable or ErrBusy", err)
		}
		exact(t, store, "a", 0)
	})
}

// absent is a lock service that is known to be away, and notes who asks for it all the same.
type absent struct {
	dlock.Locker
	asked atomic.Int64
}

func (a *absent) Away() error { return errors.New("connection refused") }

func (a *absent) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	a.asked.Add(1)
	return a.Locker.Acquire(ctx, key)
}

// A basket that needs a lock service which is known to be away takes no lock of its other SKUs.
func TestLockServiceKnownToBeAway(t *testing.T) {
	t.Parallel()
	l, gone := memlock.New(memlock.Config{}), &absent{Locker: memlock.New(memlock.Config{})}
	here := &absent{Locker: l}
	st, err := stock.NewStrategies(stock.Lockers{Etcd: gone, Redis: struct{ dlock.Locker }{here}}).Lookup("redis")
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
	if here.asked.Load() != 0 || gone.asked.Load() != 0 {
		t.Errorf("asked for %d locks of the other SKU, and for %d of the service that is away", here.asked.Load(), gone.asked.Load())
	}
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(1, "a")}); err != nil || here.asked.Load() != 1 {
		t.Errorf("the other SKU alone: %v", err)
	}
	exact(t, store, "a", 1)
}

func TestSettledOrdersStaySettled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	svc, store := setup(t, conditional(t), order.Config{})
	place := func() string {
		o, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")})
		if err != nil {
			t.Fatal(err)
		}
		return o.ID
	}
	paid, cancelled := place(), place()
	for range 2 { // the second time is answered as the first
		if o, err := svc.Pay(ctx, order.Target{ID: paid}, "p1"); err != nil || o.Status != order.Confirmed {
			t.Fatal(o, err)
		}
		if o, err := svc.Cancel(ctx, order.Target{ID: cancelled}); err != nil || o.Status != order.Cancelled {
			t.Fatal(o, err)
		}
	}
	conflicts := map[order.Status]error{}
	_, conflicts[order.Confirmed] = svc.Cancel(ctx, order.Target{ID: paid})
	_, conflicts[order.Cancelled] = svc.Pay(ctx, order.Target{ID: cancelled}, "p1")
	for state, err := range conflicts {
		if e, ok := errors.AsType[*order.StateError](err); !ok || e.Order.Status != state {
			t.Errorf("%s: %v", state, err)
		}
	}
	if _, err := svc.Pay(ctx, order.Target{ID: paid}, "p2"); err == nil {
		t.Error("paid twice, by two payments")
	}
	if _, err := svc.Pay(ctx, order.Target{ID: order.NewID()}, "p1"); !errors.Is(err, order.ErrNotFound) {
		t.Error(err)
	}
	exact(t, store, "a", 1)
}

// Of a payment and a cancellation that meet, exactly one happens.
func TestPayAndCancelAtOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	svc, store := setup(t, conditional(t), order.Config{})
	paid := int64(0)
	for range 10 {
		o, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")})
		if err != nil {
			t.Fatal(err)
		}
		var (
			group             sync.WaitGroup
			payErr, cancelErr error
		)
		group.Go(func() { _, payErr = svc.Pay(ctx, order.Target{ID: o.ID}, "p1") })
		group.Go(func() { _, cancelErr = svc.Cancel(ctx, order.Target{ID: o.ID}) })
		group.Wait()
		if (payErr == nil) == (cancelErr == nil) {
			t.Fatalf("pay: %v; cancel: %v", payErr, cancelErr)
		}
		if payErr == nil {
			paid++
		}
	}
	exact(t, store, "a", paid)
}

func TestValidID(t *testing.T) {
	t.Parallel()
	id := order.NewID()
	for s, want := range map[string]bool{
		id: true, "": false, strings.ToUpper(id): false, "{" + id + "}": false, "urn:uuid:" + id: false,
		strings.ReplaceAll(id, "-", ""): false, id + " ": false,
	} {
		if got := order.ValidID(s); got != want {
			t.Errorf("ValidID(%q) = %v", s, got)
		}
	}
}
