package stock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

func TestEveryBrokenInvariantHasAName(t *testing.T) {
	exact := stock.Audit{
		OnHand: 7, Reserved: 2, Stocked: 10, LedgerOnHand: 7, LedgerReserved: 2, Open: 2, Sold: 3,
	}
	if !exact.OK() || !exact.LedgerOK() || exact.Oversold() != 0 || exact.Undersold() != 0 || exact.LostUpdates() != 0 {
		t.Fatalf("%+v: %q", exact, exact.Broken())
	}
	for want, breakIt := range map[string]func(*stock.Audit){
		"oversold":                            func(a *stock.Audit) { a.Open, a.LedgerReserved = 12, 12 },
		"undersold":                           func(a *stock.Audit) { a.Reserved = 5 },
		"on_hand differs from the ledger":     func(a *stock.Audit) { a.OnHand = 8 },
		"reserved differs from the ledger":    func(a *stock.Audit) { a.Reserved = 1 },
		"ledger differs from the open orders": func(a *stock.Audit) { a.Open = 1 },
		"ledger differs from the paid orders": func(a *stock.Audit) { a.Sold = 2 },
		"settled twice":                       func(a *stock.Audit) { a.TwoFates = 1 },
		"fence went back":                     func(a *stock.Audit) { a.FenceStepsBack = 1 },
		"overdue":                             func(a *stock.Audit) { a.Overdue = 1 },
	} {
		a := exact
		breakIt(&a)
		if a.OK() || !strings.Contains(strings.Join(a.Broken(), "\n"), want) {
			t.Errorf("%s: %q", want, a.Broken())
		}
	}
}

func TestLookup(t *testing.T) {
	l := memlock.New(memlock.Config{})
	want := []string{
		"naive", "local", "conditional", "segmented", "optimistic", "for-update",
		"redis-unfenced", "redis", "redlock", "zookeeper", "etcd", "sql",
		"redis-cohort", "redlock-cohort", "zookeeper-cohort", "etcd-cohort", "sql-cohort", "lua",
	}
	leased := want[6:]
	without, with := stock.NewStrategies(stock.Lockers{}), stock.NewStrategies(stock.Lockers{Redis: l, Redlock: l, ZooKeeper: l, Etcd: l, SQL: l, Units: counting{}})
	if diff := cmp.Diff(want, without.Names()); diff != "" {
		t.Error(diff)
	}
	for _, name := range want {
		s, err := with.Lookup(name)
		if err != nil || s.Name != name {
			t.Errorf("%s: %v", name, err)
		}
		needs := slices.Contains(leased, name)
		if _, err := without.Lookup(name); errors.Is(err, stock.ErrStrategyUnavailable) != needs {
			t.Errorf("%s without a lock service: %v", name, err)
		}
		if fenced := s.Write == stock.Fenced; fenced != (needs && name != "redis-unfenced" && name != "lua") {
			t.Errorf("%s: fenced %v", name, fenced)
		}
		if s.Cohort != (strings.HasSuffix(name, "-cohort") || name == "lua") {
			t.Errorf("%s: cohort %v", name, s.Cohort)
		}
	}
	if _, err := with.Lookup("Redis"); !errors.Is(err, stock.ErrUnknownStrategy) {
		t.Error(err)
	}
}

// counting is a counter that does nothing.
type counting struct{ stock.Counter }

// Each strategy takes the leases of its own lock service.
func TestStrategiesUseTheirLockers(t *testing.T) {
	for name, lockers := range map[string]func(dlock.Locker) stock.Lockers{
		"redis-unfenced": func(l dlock.Locker) stock.Lockers { return stock.Lockers{Redis: l} },
		"redis":          func(l dlock.Locker) stock.Lockers { return stock.Lockers{Redis: l} },
		"redlock":        func(l dlock.Locker) stock.Lockers { return stock.Lockers{Redlock: l} },
		"zookeeper":      func(l dlock.Locker) stock.Lockers { return stock.Lockers{ZooKeeper: l} },
		"etcd":           func(l dlock.Locker) stock.Lockers { return stock.Lockers{Etcd: l} },
		"sql":            func(l dlock.Locker) stock.Lockers { return stock.Lockers{SQL: l} },
	} {
		l := memlock.New(memlock.Config{})
		all := stock.NewStrategies(lockers(l))
		st, err := all.Lookup(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if with, err := all.Lookup(name + "-cohort"); name != "redis-unfenced" && (err != nil || with.Store != st.Store) {
			t.Errorf("%s: its cohort: store %q, %v", name, with.Store, err)
		}
		err = st.Guard(t.Context(), "a", func(context.Context, dlock.Fence) error {
			if _, err := l.TryAcquire(t.Context(), stock.LockKey("a")); !errors.Is(err, dlock.ErrHeld) {
				t.Errorf("%s holds nothing: %v", name, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Tokens count from the base of the SKU, where the row looks at them.
func TestTokensCountFromTheBase(t *testing.T) {
	for _, write := range []stock.Write{stock.Fenced, stock.WriteBack} {
		guard := func(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
			return fn(ctx, dlock.Fence{Token: 7, Owner: "me"})
		}
		lines := []stock.Line{{SKU: "a", Strategy: stock.Strategy{Guard: guard, Write: write}, Base: 100}}
		err := stock.Hold(t.Context(), lines, func(_ context.Context, claims []stock.Claim) error {
			want := uint64(7)
			if write == stock.Fenced {
				want = 107
			}
			if claims[0].Fence != (dlock.Fence{Token: want, Owner: "me"}) {
				t.Errorf("write %d: %+v", write, claims[0])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Guards are taken in the order of the lines, held together, and given back in
// the opposite order, whatever fn returns.
func TestHoldNestsGuards(t *testing.T) {
	var events []string
	guard := func(_ context.Context, sku string, fn func(context.Context, dlock.Fence) error) error {
		events = append(events, "+"+sku)
		defer func() { events = append(events, "-"+sku) }()
		return fn(t.Context(), dlock.Fence{Token: uint64(len(events)), Owner: sku})
	}
	s := stock.Strategy{Name: "s", Guard: guard, Write: stock.Fenced}
	failed := errors.New("failed")
	err := stock.Hold(t.Context(), []stock.Line{{SKU: "a", Strategy: s}, {SKU: "b", Strategy: s, Base: 100}}, func(_ context.Context, claims []stock.Claim) error {
		events = append(events, "work")
		want := []stock.Claim{
			{SKU: "a", Write: stock.Fenced, Fence: dlock.Fence{Token: 1, Owner: "a"}},
			{SKU: "b", Write: stock.Fenced, Fence: dlock.Fence{Token: 102, Owner: "b"}, Base: 100},
		}
		if diff := cmp.Diff(want, claims); diff != "" {
			t.Error(diff)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"+a", "+b", "work", "-b", "-a"}, events); diff != "" {
		t.Error(diff)
	}
}

// The mutex of "local" keeps one order at a time, and waiting for it ends with
// the context.
func TestLocalMutex(t *testing.T) {
	local, err := stock.NewStrategies(stock.Lockers{}).Lookup("local")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	hungUp := errors.New("the client hung up")
	err = local.Guard(t.Context(), "a", func(ctx context.Context, _ dlock.Fence) error {
		cancel(hungUp)
		err := local.Guard(gone, "a", func(context.Context, dlock.Fence) error {
			t.Error("two hold the mutex")
			return nil
		})
		if !errors.Is(err, hungUp) {
			t.Errorf("waiting ended with %v", err)
		}
		return local.Guard(ctx, "b", func(context.Context, dlock.Fence) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}

func TestValidSKU(t *testing.T) {
	for sku, want := range map[string]bool{
		"a": true, "A-1_b.c": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "-a": false, ".": false, "a b": false, "a/b": false,
		"{a}": false, "ä": false, "a\x00": false, "a\n": false,
	} {
		if got := stock.ValidSKU(sku); got != want {
			t.Errorf("ValidSKU(%q) = %v", sku, got)
		}
	}
}

// Patience is for all guards of a basket together, and whoever has none left still takes what
// is free.
func TestPatienceIsForAllGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New(memlock.Config{})
		strategy, err := stock.NewStrategies(stock.Lockers{Redis: l}).Lookup("redis")
		if err != nil {
			t.Fatal(err)
		}
		held := make(map[string]*dlock.Lease)
		for _, sku := range []string{"a", "b"} {
			if held[sku], err = l.Acquire(t.Context(), stock.LockKey(sku)); err != nil {
				t.Fatal(err)
			}
		}
		release := func(sku string, after time.Duration) {
			time.AfterFunc(after, func() {
				if err := held[sku].Release(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		release("a", 700*time.Millisecond)
		release("b", 1500*time.Millisecond)
		lines := []stock.Line{{SKU: "a", Strategy: strategy}, {SKU: "b", Strategy: strategy}}
		hold := func() error {
			return stock.Hold(stock.WithPatience(t.Context(), time.Second), lines, func(context.Context, []stock.Claim) error { return nil })
		}
		began := time.Now()
		if err := hold(); !errors.Is(err, stock.ErrGuarded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(time.Second)
		spent := stock.WithPatience(t.Context(), 0)
		if err := stock.Hold(spent, lines, func(context.Context, []stock.Claim) error { return nil }); err != nil {
			t.Errorf("free guards, and no patience: %v", err)
		}
	})
}

// reseeder is a locker that notes from where its fences shall count.
type reseeder struct {
	dlock.Locker
	least uint64
}

func (r *reseeder) Reseed(_ context.Context, _ string, atLeast uint64) error {
	r.least = atLeast
	return nil
}

// A row that has accepted more than the lock service knows raises the fences of the service, as
// the service counts them.
func TestRefusalRaisesTheFences(t *testing.T) {
	l := &reseeder{Locker: memlock.New(memlock.Config{})}
	st, err := stock.NewStrategies(stock.Lockers{Redis: l}).Lookup("redis")
	if err != nil {
		t.Fatal(err)
	}
	refusal := &stock.FencedError{Refused: stock.Claim{SKU: "a"}, Accepted: dlock.Fence{Token: 150}, Base: 100}
	err = st.Guard(t.Context(), "a", func(context.Context, dlock.Fence) error { return refusal })
	if !errors.Is(err, dlock.ErrFenced) || l.least != 50 {
		t.Errorf("raised to %d: %v", l.least, err)
	}
}
