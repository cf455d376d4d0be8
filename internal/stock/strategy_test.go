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
		err = st.Lock(t.Context(), "a", func(context.Context, dlock.Fence) error {
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

// Tokens count from the token offset of the SKU where the row compares them.
func TestTokensCountFromTheBase(t *testing.T) {
	for _, write := range []stock.Update{stock.Fenced, stock.WriteBack} {
		lock := func(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
			return fn(ctx, dlock.Fence{Token: 7, Owner: "me"})
		}
		offers := []stock.Offer{{SKU: "a", Strategy: stock.Strategy{Lock: lock, Update: write}, Base: 100}}
		err := stock.WithLocks(t.Context(), offers, func(_ context.Context, claims []stock.Claim) error {
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

// Locks are taken in the order of the offers, held together, and released in the opposite order, whatever fn returns.
func TestHoldNestsGuards(t *testing.T) {
	var events []string
	lock := func(_ context.Context, sku string, fn func(context.Context, dlock.Fence) error) error {
		events = append(events, "+"+sku)
		defer func() { events = append(events, "-"+sku) }()
		return fn(t.Context(), dlock.Fence{Token: uint64(len(events)), Owner: sku})
	}
	s := stock.Strategy{Name: "s", Lock: lock, Update: stock.Fenced}
	failed := errors.New("failed")
	err := stock.WithLocks(t.Context(), []stock.Offer{{SKU: "a", Strategy: s}, {SKU: "b", Strategy: s, Base: 100}}, func(_ context.Context, claims []stock.Claim) error {
		events = append(events, "work")
		want := []stock.Claim{
			{SKU: "a", Update: stock.Fenced, Fence: dlock.Fence{Token: 1, Owner: "a"}},
			{SKU: "b", Update: stock.Fenced, Fence: dlock.Fence{Token: 102, Owner: "b"}, Base: 100},
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
