package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// stage is a database and a Redis that nobody else uses.
type stage struct {
	database, redis string
	flags           []string // that make an instance use both
}

func newStage(t *testing.T) stage {
	t.Helper()
	s := stage{database: testbedtest.Database(t), redis: ownRedis(t)}
	s.flags = []string{"--database", s.database, "--redis", s.redis}
	return s
}

// three starts three instances as processes.
func (s stage) three(t *testing.T, more ...string) (all [3]*instance) {
	t.Helper()
	for i := range all {
		args := append(append([]string{"--instance", fmt.Sprint("shop-", i+1)}, s.flags...), more...)
		all[i] = start(t, args...)
	}
	return all
}

// locks returns the locks of the instances, for a test that holds or inspects them itself. Its leases are longer than
// those of the instances, so it keeps them on a machine that was paused.
func (s stage) locks(t *testing.T) *redislock.Locker {
	t.Helper()
	rdb, err := redisclient.New(s.redis)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := redislock.New(rdb, redislock.Config{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := errors.Join(locks.Close(ctx), rdb.Close()); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// hold takes a lock from the instances until the test releases it.
func hold(t *testing.T, locks *redislock.Locker, key string) *dlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := locks.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// free gives a lock back.
func free(t *testing.T, lease *dlock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// queued waits until so many stand in the queue of a lock.
func queued(t *testing.T, locks *redislock.Locker, key string, n int) {
	t.Helper()
	testbedtest.Eventually(t, fmt.Sprint(n, " wait for ", key), func() bool { return inspect(t, locks, key).Waiters == n })
}

// inspect returns the state of a lock.
func inspect(t *testing.T, locks *redislock.Locker, key string) (state dlock.State) {
	t.Helper()
	surely(t, func() (err error) {
		state, err = locks.Inspect(t.Context(), key)
		return err
	})
	return state
}

// surely does what can be repeated until it succeeds: where the machine is paused, an answer may come too late.
func surely(t *testing.T, do func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// sqliteURL returns a new database.
func sqliteURL(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
}

// ownRedis returns a Redis that wakes nobody for the timers of another test.
func ownRedis(t *testing.T) string {
	t.Helper()
	return testbedtest.StartRedis(t, testbed.RedisConfig{}).URL()
}

// The times that docs/reference/guarantees.md promises.
const (
	electionTTL    = 5 * time.Second // without ZooKeeper
	leaseTTL       = 2 * time.Second
	sessionTimeout = 8 * time.Second
	permitsTTL     = 3 * time.Second
	drainWait      = 2 * time.Second
	stopTimeout    = 12 * time.Second
)

// books opens the database of a test alongside its instances. Orders that are committed
// there have timers, of which nobody is notified.
func books(t *testing.T, url string) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url, Instance: "test", Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	timers, err := store.Timers()
	if err != nil {
		t.Fatal(err)
	}
	q, err := timeout.New(timers, memindex.New(memindex.Config{}), timeout.Config{Canary: true})
	if err != nil {
		t.Fatal(err)
	}
	return store.WithTimers(q)
}

// expired waits until every order of the SKU has released its units. It requires that
// many orders, and that none was lost, ended twice, or ended early. It returns the longest
// delay.
func expired(t *testing.T, store *sqlstore.Store, sku string, orders int) (latest time.Duration) {
	t.Helper()
	var fates []sqlstore.Fate
	released := func(f sqlstore.Fate) bool { return f.Releases > 0 }
	for end := time.Now().Add(2*time.Minute + time.Duration(orders)*10*time.Millisecond); ; {
		began := time.Now()
		var err error
		if _, fates, err = store.Fates(t.Context(), sku); err != nil {
			t.Fatal(err)
		}
		if len(fates) == orders && !slices.ContainsFunc(fates, func(f sqlstore.Fate) bool { return !released(f) }) || time.Now().After(end) {
			break
		}
		<-time.After(20*time.Millisecond + 10*time.Since(began)) // a look is work for the database as well
	}
	var late []time.Duration
	lost, double, early := 0, 0, 0
	for _, f := range fates {
		if !released(f) {
			lost++
			continue
		}
		if f.Twice() {
			double++
		}
		if f.ReleasedAt.Before(f.ExpiresAt) {
			early++
		}
		late = append(late, f.ReleasedAt.Sub(f.ExpiresAt))
	}
	t.Logf("%s: orders %d, expired %d, lost %d, double %d, early %d; lateness p50 %v, p99 %v", sku, len(fates), len(late), lost, double, early, quantile(late, 50), quantile(late, 99))
	if len(fates) != orders || lost+double+early > 0 {
		t.Errorf("want %d orders of %s that have expired once each, in time", orders, sku)
	}
	return quantile(late, 100)
}

// audited returns the audit of a SKU, which has to be right.
func audited(t *testing.T, store *sqlstore.Store, sku string) stock.Audit {
	t.Helper()
	audits, err := store.Audit(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if !audits[0].OK() {
		t.Errorf("the audit of %s: %q, %+v", sku, audits[0].Broken(), audits[0])
	}
	return audits[0]
}

// balanced is audited for a SKU of which no unit is reserved.
func balanced(t *testing.T, store *sqlstore.Store, sku string) {
	t.Helper()
	if a := audited(t, store, sku); a.Reserved != 0 {
		t.Errorf("%s has %d reserved units", sku, a.Reserved)
	}
}

// quantile sorts d and returns the least that p percent do not exceed.
func quantile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)*p+99)/100-1].Round(100 * time.Microsecond)
}

// buy places an order of one unit, and returns the status of the answer. It may be called
// in any goroutine.
func buy(ctx context.Context, url, sku string) (status int, answer string, err error) {
	a := served(ctx, http.DefaultClient, url, sku)
	return a.status, a.body, a.err
}

// abandon stores orders of one unit that have expired already.
func abandon(t *testing.T, store *sqlstore.Store, sku string, orders int) {
	t.Helper()
	for orders > 0 {
		batch := make([]*order.Request, min(orders, 500))
		for i := range batch { // without a TTL
			batch[i] = &order.Request{
				Order: order.Order{ID: order.NewID(), CustomerID: "c1", Items: []order.Item{{SKU: sku, Quantity: 1}}},
			}
		}
		if err := store.Commit(t.Context(), &order.Batch{Claims: []stock.Claim{{SKU: sku, Update: stock.RowLock}}, Requests: batch}); err != nil {
			t.Fatal(err)
		}
		orders -= len(batch)
	}
}

// browser opens a page in Chromium, without a window, until the test ends. Each error that the browser reports fails the
// test, unless it is expected: an exception, and whatever the page's policy forbids.
func browser(t *testing.T, url string, expected ...string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute), chromedp.WindowSize(1280, 1400))
	ctx, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page has failed: %v", e.ExceptionDetails)
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.EntryLevelError && !slices.ContainsFunc(expected, func(s string) bool { return strings.Contains(e.Entry.Text, s) }) {
				t.Errorf("the browser reports: %s", e.Entry.Text)
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate(url))
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// show opens one list of the records of a page.
func show(page context.Context, t *testing.T, records string) {
	t.Helper()
	testbedtest.Eventually(t, "the page shows its "+records, func() bool {
		return evaluate[bool](page, t, fmt.Sprintf("document.querySelector('[data-records=%[1]s]')?.click(), document.querySelector('[data-records=%[1]s][aria-pressed=true]') !== null", records))
	})
}

// evaluate returns the value of an expression on the page, or what its promise results in.
func evaluate[T any](page context.Context, t *testing.T, expression string) (value T) {
	t.Helper()
	value, err := chromedp.Run(page, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
