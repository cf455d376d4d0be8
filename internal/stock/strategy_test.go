package stock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

func TestLookup(t *testing.T) {
	l := memlock.New(memlock.Config{})
	want := []string{
		"naive", "local", "conditional", "optimistic", "for-update",
		"redis-unfenced", "redis", "redlock", "zookeeper", "etcd", "sql",
		"redis-cohort", "redlock-cohort", "zookeeper-cohort", "etcd-cohort", "sql-cohort", "lua",
	}
	leased := want[5:]
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
		if fenced := s.Update == stock.Fenced; fenced != (needs && name != "redis-unfenced" && name != "lua") {
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
		held, err := st.Lock(t.Context(), "a")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := l.TryAcquire(t.Context(), stock.LockKey("a")); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("%s holds nothing: %v", name, err)
		}
		held.Release()
		if free, err := l.TryAcquire(t.Context(), stock.LockKey("a")); err != nil {
			t.Errorf("%s is still held: %v", name, err)
		} else if err := free.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if held.Context.Err() == nil {
			t.Errorf("%s: the context has not ended with the lock", name)
		}
	}
}

// Tokens count from the token offset of the SKU where the row compares them.
func TestTokensCountFromTheBase(t *testing.T) {
	for _, write := range []stock.Update{stock.Fenced, stock.WriteBack} {
		lock := func(ctx context.Context, _ string) (stock.Held, error) {
			return stock.Held{Context: ctx, Fence: dlock.Fence{Token: 7, Owner: "me"}, Release: func() {}}, nil
		}
		locks, err := stock.Acquire(t.Context(), []stock.Offer{{SKU: "a", Strategy: stock.Strategy{Lock: lock, Update: write}, Base: 100}})
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(7)
		if write == stock.Fenced {
			want = 107
		}
		if locks.Claims[0].Fence != (dlock.Fence{Token: want, Owner: "me"}) {
			t.Errorf("write %d: %+v", write, locks.Claims[0])
		}
	}
}

// Locks are taken in the order of the offers, held together, and released in the opposite order.
func TestLocksOfABasketAreNested(t *testing.T) {
	var events []string
	lock := func(ctx context.Context, sku string) (stock.Held, error) {
		events = append(events, "+"+sku)
		release := func() { events = append(events, "-"+sku) }
		return stock.Held{Context: ctx, Fence: dlock.Fence{Token: uint64(len(events)), Owner: sku}, Release: release}, nil
	}
	s := stock.Strategy{Name: "s", Lock: lock, Update: stock.Fenced}
	locks, err := stock.Acquire(t.Context(), []stock.Offer{{SKU: "a", Strategy: s}, {SKU: "b", Strategy: s, Base: 100}})
	if err != nil {
		t.Fatal(err)
	}
	want := []stock.Claim{
		{SKU: "a", Update: stock.Fenced, Fence: dlock.Fence{Token: 1, Owner: "a"}},
		{SKU: "b", Update: stock.Fenced, Fence: dlock.Fence{Token: 102, Owner: "b"}, Base: 100},
	}
	if diff := cmp.Diff(want, locks.Claims); diff != "" {
		t.Error(diff)
	}
	events = append(events, "work")
	locks.Release()
	if diff := cmp.Diff([]string{"+a", "+b", "work", "-b", "-a"}, events); diff != "" {
		t.Error(diff)
	}
}

// If a lock of a basket is not to be had, the others are released. If one of them was lost meanwhile, the error says that, because
// another attempt may succeed then.
func TestLocksOfABasketAreAllOrNone(t *testing.T) {
	l := memlock.New(memlock.Config{})
	first, err := stock.NewStrategies(stock.Lockers{Redis: l}).Lookup("redis")
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("connection refused")
	for name, lost := range map[string]bool{"the first lock is held": false, "the first lock is lost": true} {
		t.Run(name, func(t *testing.T) {
			second := stock.Strategy{Lock: func(ctx context.Context, _ string) (stock.Held, error) {
				if lost {
					if err := l.ForceRelease(t.Context(), stock.LockKey("a")); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
				}
				return stock.Held{}, refused
			}}
			_, err := stock.Acquire(t.Context(), []stock.Offer{{SKU: "a", Strategy: first}, {SKU: "b", Strategy: second}})
			if !errors.Is(err, refused) || errors.Is(err, dlock.ErrLost) != lost {
				t.Error(err)
			}
			free, err := l.TryAcquire(t.Context(), stock.LockKey("a"))
			if err != nil {
				t.Fatal(err)
			}
			if err := free.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
