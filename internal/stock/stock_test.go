package stock_test

import (
	"context"
	"errors"
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
	} {
		a := exact
		breakIt(&a)
		if a.OK() || !strings.Contains(strings.Join(a.Broken(), "\n"), want) {
			t.Errorf("%s: %q", want, a.Broken())
		}
	}
}

func TestLookup(t *testing.T) {
	without, with := stock.NewStrategies(nil), stock.NewStrategies(memlock.New(memlock.Config{}))
	want := []string{"naive", "local", "conditional", "optimistic", "for-update", "redis-unfenced", "redis"}
	if diff := cmp.Diff(want, without.Names()); diff != "" {
		t.Error(diff)
	}
	for _, name := range want {
		if s, err := with.Lookup(name); err != nil || s.Name != name {
			t.Errorf("%s: %v", name, err)
		}
		_, err := without.Lookup(name)
		if needs := strings.HasPrefix(name, "redis"); errors.Is(err, stock.ErrStrategyUnavailable) != needs {
			t.Errorf("%s without a lock service: %v", name, err)
		}
	}
	if _, err := with.Lookup("Redis"); !errors.Is(err, stock.ErrUnknownStrategy) {
		t.Error(err)
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
	err := stock.Hold(t.Context(), []stock.Line{{SKU: "a", Strategy: s}, {SKU: "b", Strategy: s}}, func(_ context.Context, claims []stock.Claim) error {
		events = append(events, "work")
		want := []stock.Claim{
			{SKU: "a", Write: stock.Fenced, Fence: dlock.Fence{Token: 1, Owner: "a"}},
			{SKU: "b", Write: stock.Fenced, Fence: dlock.Fence{Token: 2, Owner: "b"}},
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
	local, err := stock.NewStrategies(nil).Lookup("local")
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
		strategy, err := stock.NewStrategies(l).Lookup("redis")
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
