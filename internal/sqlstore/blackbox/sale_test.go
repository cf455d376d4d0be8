package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// alwaysGrants is a lock that excludes nobody: every caller gets a lease at
// once, each with a new fence.
type alwaysGrants struct{ token atomic.Uint64 }

func (l *alwaysGrants) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.TryAcquire(ctx, key)
}

func (l *alwaysGrants) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	n := l.token.Add(1)
	done := func(context.Context) error { return nil }
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: dlock.Fence{Token: n, Owner: fmt.Sprint("owner-", n)}, Sent: time.Now(), TTL: time.Hour,
		Release: done,
	}), nil
}

// sale is a flash sale at several instances in this process.
type sale struct {
	strategy   string
	strategies *stock.Strategies // those of "local" are new for each instance
	buyers     int
	attempts   int  // per buyer
	cancel     bool // cancel about a third of the accepted orders while others buy
	plugin     gorm.Plugin
}

// insist asks again until ctx ends while the database is busy or unavailable and nothing has happened. On a slow
// machine others may keep it busy for longer than one request tries.
func insist[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		result, err := ask()
		busy := errors.Is(err, stock.ErrBusy) || errors.Is(err, stock.ErrUnavailable)
		if !busy || errors.Is(err, order.ErrOutcomeUnknown) || ctx.Err() != nil {
			return result, err
		}
	}
}

// units is how many are on sale.
const units = 40

// hold runs the sale of a new SKU, and returns the audit and how many units
// were accepted and not cancelled.
func (s sale) hold(t *testing.T, url string) (a stock.Audit, kept int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(testbedtest.Size(4, 40))*time.Minute)
	defer cancel()
	var (
		store    *sqlstore.Store
		services []*order.Service
	)
	for i := range 3 {
		var plugins []gorm.Plugin
		if s.plugin != nil {
			plugins = append(plugins, s.plugin)
		}
		store = open(t, url, fmt.Sprint("instance-", i), plugins...)
		st := s.strategies
		if st == nil {
			st = stock.NewStrategies(stock.Lockers{})
		}
		services = append(services, order.NewService(store, st, order.Config{}))
	}
	create(t, store, s.strategy, s.strategy, units)
	var (
		group    sync.WaitGroup
		accepted atomic.Int64
		start    = make(chan struct{})
	)
	for b := range s.buyers {
		group.Go(func() {
			<-start
			for n := range s.attempts {
				svc := services[(b+n)%len(services)]
				o, err := insist(ctx, func() (order.Order, error) {
					return svc.Place(ctx, order.Purchase{Customer: "c1", Items: []order.Item{{SKU: s.strategy, Quantity: 1}}})
				})
				if _, refused := errors.AsType[*stock.ShortageError](err); refused {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				accepted.Add(1)
				if s.cancel && rand.N(3) == 0 {
					if _, err := insist(ctx, func() (order.Order, error) { return svc.Cancel(ctx, order.Target{ID: o.ID}) }); err != nil {
						t.Error(err)
					}
					accepted.Add(-1)
				}
			}
		})
	}
	close(start)
	group.Wait()
	for s.cancel { // units that were released after the others had made all their attempts
		_, err := insist(ctx, func() (order.Order, error) {
			return services[0].Place(ctx, order.Purchase{Customer: "c1", Items: []order.Item{{SKU: s.strategy, Quantity: 1}}})
		})
		if _, refused := errors.AsType[*stock.ShortageError](err); refused {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		accepted.Add(1)
	}
	return auditOf(t, store, s.strategy), accepted.Load()
}

// Every strategy but the controls sells exactly the stock, with cancellations during the sale.
func TestSafeStrategiesAreExact(t *testing.T) {
	t.Parallel()
	variants(t, func(t *testing.T, url string) {
		lease := memlock.New(memlock.Config{})
		for _, name := range []string{"conditional", "optimistic", "for-update", "redis", "redis-cohort", "lua"} {
			t.Run(name, func(t *testing.T) {
				s := sale{strategy: name, strategies: stock.NewStrategies(stock.Lockers{Redis: lease, Units: counter(t)}), buyers: 12, attempts: testbedtest.Size(15, 1500), cancel: true}
				a, kept := s.hold(t, url)
				if !a.OK() || a.Accepted() != units || kept != units {
					t.Errorf("kept %d of %d; %+v %q", kept, units, a, a.Broken())
				}
			})
		}
		t.Run("redis-unfenced", func(t *testing.T) { // exact while nothing is released
			s := sale{strategy: "redis-unfenced", strategies: stock.NewStrategies(stock.Lockers{Redis: lease}), buyers: 12, attempts: testbedtest.Size(15, 1500)}
			if a, _ := s.hold(t, url); !a.OK() || a.Accepted() != units {
				t.Errorf("%+v %q", a, a.Broken())
			}
		})
	})
}

// The guarantee does not depend on the lock. With a lock that grants to every caller, the fencing token alone keeps the
// invariants, whichever service the lock is of.
func TestALockThatAlwaysGrantsBreaksNothing(t *testing.T) {
	t.Parallel()
	variants(t, func(t *testing.T, url string) {
		own := map[string]*alwaysGrants{"redis": {}, "redlock": {}, "zookeeper": {}, "etcd": {}, "sql": {}}
		strategies := stock.NewStrategies(stock.Lockers{
			Redis: own["redis"], Redlock: own["redlock"], ZooKeeper: own["zookeeper"], Etcd: own["etcd"], SQL: own["sql"],
		})
		held := 0
		for _, name := range strategies.Names() {
			if st, err := strategies.Lookup(name); err != nil || st.Update != stock.Fenced {
				continue
			}
			held++
			t.Run(name, func(t *testing.T) {
				grants := map[string]uint64{}
				for other, l := range own {
					grants[other] = l.token.Load()
				}
				s := sale{strategy: name, strategies: strategies, buyers: 12, attempts: testbedtest.Size(15, 1500), cancel: true}
				a, kept := s.hold(t, url)
				if !a.OK() || a.Accepted() != units || kept != units {
					t.Errorf("kept %d of %d; %+v %q", kept, units, a, a.Broken())
				}
				for other, l := range own {
					if n := l.token.Load() - grants[other]; (n > 0) != (other == strings.TrimSuffix(name, "-cohort")) {
						t.Errorf("the locks of %s were granted %d times", other, n)
					}
				}
			})
		}
		if want := 2 * len(own); held != want { // each by itself, and with a cohort
			t.Errorf("%d fenced strategies, want %d", held, want)
		}
	})
}

// oversells holds the sale until the audit finds units sold twice. A race need
// not show at the first try; a mutant that never shows it makes the test fail.
func oversells(t *testing.T, url string, s sale) {
	t.Helper()
	base := s.strategies
	for try := range 20 {
		name := fmt.Sprintf("%s-%d", s.strategy, try)
		attempt := s
		attempt.strategy = name
		if base == nil {
			base = stock.NewStrategies(stock.Lockers{})
		}
		st, err := base.Lookup(s.strategy)
		if err != nil {
			t.Fatal(err)
		}
		st.Name = name
		attempt.strategies = base.With(st)
		if a, _ := attempt.hold(t, url); a.Oversold() > 0 && !a.OK() {
			return
		}
	}
	t.Errorf("%s: the books stayed exact", s.strategy)
}

// The control oversells, and the audit says so.
func TestNaiveOversells(t *testing.T) {
	t.Parallel()
	variants(t, func(t *testing.T, url string) {
		oversells(t, url, sale{strategy: "naive", buyers: 12, attempts: 15})
	})
}

// unlockedRows is a gorm plugin that reads rows without locking them.
type unlockedRows struct{}

func (unlockedRows) Name() string { return "unlocked" }

func (unlockedRows) Initialize(db *gorm.DB) error {
	return db.Callback().Row().Before("gorm:row").Register("unlocked", func(tx *gorm.DB) {
		if text, locks := strings.CutSuffix(tx.Statement.SQL.String(), " FOR UPDATE"); locks {
			tx.Statement.SQL.Reset()
			tx.Statement.SQL.WriteString(text)
		}
	})
}

// Each mutant breaks one thing that a safe strategy relies on; the sale and its
// audit have to notice.
func TestBrokenStrategiesAreCaught(t *testing.T) {
	t.Parallel()
	lock := memlock.New(memlock.Config{})
	leased := func(l dlock.Locker, early bool) stock.Lock {
		return func(ctx context.Context, sku string) (stock.Held, error) {
			lease, err := l.Acquire(ctx, sku)
			if err != nil {
				return stock.Held{}, err
			}
			release := func() { _ = lease.Release(ctx) }
			if early {
				release()
			}
			return stock.Held{Context: ctx, Fence: lease.Fence(), Release: release}, nil
		}
	}
	released := leased(lock, true)
	unguarded := func(ctx context.Context, _ string) (stock.Held, error) {
		return stock.Held{Context: ctx, Release: func() {}}, nil
	}
	mutants := []stock.Strategy{
		{Name: "read-modify-write", Lock: unguarded, Update: stock.WriteBack},
		{Name: "release-before-commit", Lock: released, Update: stock.WriteBack},
	}
	t.Run("mariadb/no-row-lock", func(t *testing.T) { // SQLite's single writer would make up for it
		url := testbedtest.Database(t)
		m := stock.Strategy{Name: "unlocked", Lock: leased(&alwaysGrants{}, false), Update: stock.Fenced}
		oversells(t, url, sale{
			strategy: m.Name, strategies: stock.NewStrategies(stock.Lockers{}).With(m), buyers: 12, attempts: 15, plugin: unlockedRows{},
		})
	})
	engines(t, func(t *testing.T, url string) {
		for _, m := range mutants {
			t.Run(m.Name, func(t *testing.T) {
				oversells(t, url, sale{strategy: m.Name, strategies: stock.NewStrategies(stock.Lockers{}).With(m), buyers: 12, attempts: 15})
			})
		}
		t.Run("release-before-commit-but-fenced", func(t *testing.T) { // the fence makes up for it
			m := stock.Strategy{Name: "early", Lock: released, Update: stock.Fenced}
			s := sale{strategy: "early", strategies: stock.NewStrategies(stock.Lockers{}).With(m), buyers: 12, attempts: testbedtest.Size(15, 1500)}
			if a, _ := s.hold(t, url); !a.OK() || a.Accepted() != units {
				t.Errorf("%+v %q", a, a.Broken())
			}
		})
	})
}
