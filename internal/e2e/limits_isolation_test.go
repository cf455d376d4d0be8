package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// quality is how other SKUs do while a fault lasts, alongside the time before and after it.
type quality struct {
	speed, p99, noise float64 // medians of the ratios with / without, and of p99 after / before
	before, during    time.Duration
	late, usual       time.Duration // p99 of how late unpaid orders of others expire, with the fault and without
	back              time.Duration
	unready           int
}

func median(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }

// measure has a fault several times, each between two windows without it.
func (m *mall) measure(t *testing.T, f mishap, skus []string) (q quality) {
	t.Helper()
	const length, perSecond = 5 * time.Second, 20
	var speeds, p99s, noises []float64
	var befores, durings, lates, usuals []time.Duration
	for range 3 {
		before := m.window(t, length, perSecond, skus...)
		during, back := m.suffer(t, []mishap{f}, length, perSecond, skus)
		after := m.window(t, length, perSecond, skus...)
		base := float64(max(quantile(before.took, 99), time.Millisecond))
		speeds = append(speeds, during.speed()/before.speed())
		p99s = append(p99s, float64(quantile(during.took, 99))/base)
		noises = append(noises, float64(quantile(after.took, 99))/base)
		befores, durings = append(befores, before.took...), append(durings, during.took...)
		usuals, lates = append(usuals, before.late...), append(lates, during.late...)
		q.unready += during.unready
		q.back = max(q.back, back)
		if during.speed() < 0.9 && len(during.odd) > 0 {
			t.Log(f.name, during.odd[0])
		}
	}
	q.speed, q.p99, q.noise = median(speeds), median(p99s), median(noises)
	q.before, q.during = quantile(befores, 99), quantile(durings, 99)
	q.usual, q.late = quantile(usuals, 99), quantile(lates, 99)
	return q
}

// suffer is window with faults, and waits until all overdue units of their SKUs are free again.
func (m *mall) suffer(t *testing.T, faults []mishap, length time.Duration, perSecond int, skus []string) (d trade, back time.Duration) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var ends []func()
	for _, f := range faults {
		ends = append(ends, f.begin(ctx, t))
	}
	d = m.window(t, length, perSecond, skus...)
	leave()
	for _, end := range ends {
		end()
	}
	for _, f := range faults {
		back = max(back, m.back(t, f.sku))
		audited(t, m.books, f.sku)
	}
	return d, back
}

// The rows of orders or of customers of one SKU are locked, of more than there are connections, or its stock row. Others are bought, paid for, read and
// expire, the instances are ready, and the units of the SKU are free again by themselves.
func TestHeldRowsDelayOnlyTheirSKU(t *testing.T) {
	t.Parallel()
	m := newMall(t)
	skus := []string{"plain", "cohort"}
	m.sku(t, "plain", "conditional")
	m.sku(t, "cohort", "redis-cohort")
	for _, f := range []mishap{m.lockedOrders(t), m.lockedCustomer(t, skus...), m.lockedBasket(t, "redis-cohort", "cohort")} {
		d, back := m.suffer(t, []mishap{f}, 2*time.Second, 10, skus)
		t.Logf("%s: %d of %d sold, p99 %v, expired %v late at most, overdue units back after %v",
			f.name, d.sold, d.asked, quantile(d.took, 99), quantile(d.late, 100), back)
		if d.speed() < 0.75 || quantile(d.took, 99) > 10*time.Second || d.unready > 0 || back > time.Minute {
			t.Errorf("%s: %d of %d sold, p99 %v, %d times not ready, units back after %v: %q",
				f.name, d.sold, d.asked, quantile(d.took, 99), d.unready, back, d.odd)
		}
	}
	if n := m.dead(t); n > 0 {
		t.Errorf("%d timers are dead", n)
	}
}

// The same with numbers for docs/benchmarks/results/isolation.md, one fault after the other. Other SKUs are sold at
// 90 % of their speed and within twice their 99th percentile. The test judges that percentile only if it repeats
// without a fault, and exceeds the cost of customers who buy nothing. The table has it in any case.
func TestIsolationInNumbers(t *testing.T) {
	testbedtest.FullSize(t)
	measured(t)
	m := newMall(t)
	plain, all := []string{"plain"}, []string{"plain", "cohort"}
	m.sku(t, "plain", "conditional")
	m.sku(t, "cohort", "redis-cohort")
	faults := []mishap{m.onlookers(t, 1000), m.lockedOrders(t), m.lockedCustomer(t, all...), m.massExpiry(t, 10_000, false), m.massExpiry(t, 10_000, true)}
	for _, strategy := range []string{"conditional", "redis-cohort", "lua"} {
		faults = append(faults, m.lockedRow(t, strategy))
	}
	faults = append(faults, m.lockedBasket(t, "redis-cohort", "cohort"))
	for _, strategy := range []string{"conditional", "redis-cohort"} {
		faults = append(faults, m.flashSale(t, strategy, 1000))
	}
	faults = append(faults, m.deadService(t, "etcd", m.etcd.Pause, m.etcd.Resume), m.deadService(t, "redis", m.redis.Pause, m.redis.Resume))
	m.window(t, 3*time.Second, 20, all...) // warms up
	var table strings.Builder
	table.WriteString("# Isolation between SKUs\n\n## How to read it\n\nTwo instances on one machine with their servers and their customers. Customers of two other SKUs come 20 times a second, order, pay and\n" +
		"read; every fifth does not pay. Each fault lasts 5 s, three times, each time between two windows of 5 s without it. Ratios are medians of the\n" +
		"three. Wanted: speed 0.9, p99 2. The noise is the p99 of the window after the fault over that of the window before it. `make soak` writes this page.\n" +
		"The customers of the SKU with the fault, up to 1,000 of them, use the same processors, which p99 shows as well: the row of those who buy nothing\n" +
		"has the price of that alone.\n\n" +
		"| what happens to one SKU | speed | p99 ratio (noise) | p99 without, with (ms) | expired late, p99 without, with (s) | not ready | overdue units back (s) |\n|---|---|---|---|---|---|---|\n")
	bearable := time.Second
	for i, f := range faults {
		skus := all
		if f.redis {
			skus = plain
		}
		q := m.measure(t, f, skus)
		row := fmt.Sprintf("| %s | %.2f | %.1f (%.1f) | %d, %d | %.1f, %.1f | %d | %.1f |\n", f.name, q.speed, q.p99, q.noise,
			q.before.Milliseconds(), q.during.Milliseconds(), q.usual.Seconds(), q.late.Seconds(), q.unready, q.back.Seconds())
		table.WriteString(row)
		t.Log(row)
		if i == 0 {
			bearable = min(max(bearable, q.during), 3*time.Second) // nothing is wrong but that the processors are busy
		}
		if q.speed < 0.9 || q.unready > 0 || q.p99 > 2 && q.noise < 1.5 && q.during > bearable || q.back > 20*time.Second {
			t.Errorf("%s: %+v", f.name, q)
		}
	}
	if n := m.dead(t); n > 0 {
		t.Errorf("%d timers are dead", n)
	}
	must(t, os.WriteFile("../../docs/benchmarks/results/isolation.md", []byte(table.String()), 0o600))
}

// lockStock keeps the stock row of a SKU locked in a foreign session, as an operator's open transaction does.
func lockStock(t *testing.T, database, sku string) (release func()) {
	t.Helper()
	tx, err := testbedtest.OpenSQL(t, database).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock := sync.OnceFunc(func() { tx.Rollback() })
	t.Cleanup(unlock)
	var locked string
	if err := tx.QueryRowContext(t.Context(), "SELECT sku FROM skus WHERE sku = ? FOR UPDATE", sku).Scan(&locked); err != nil {
		t.Fatal(err)
	}
	return unlock
}

// A session keeps the stock row of one SKU locked while 80 customers buy that SKU and others pay for it. Meanwhile
// another SKU is sold, paid for and read as if nothing had happened, and the instance is ready.
func TestLockedRowDelaysOnlyItsSKU(t *testing.T) {
	t.Parallel()
	strategies := []string{"conditional", "redis", "sql-cohort"} // no lock, one for each order, and one for a batch
	if testbedtest.Size(0, 1) == 1 {
		strategies = append(strategies, "optimistic", "for-update", "lua")
	}
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) { lockedRow(t, strategy) }) // one after the other: each is a crowd
	}
}

func lockedRow(t *testing.T, strategy string) {
	t.Helper()
	most := time.Duration(testbedtest.Size(10, 2)) * time.Second // the usual run shares the machine with other tests
	s, stalls, client := newStage(t), detectStalls(t), customers(t)
	shop := start(t, s.flags...)
	shop.want(t, http.StatusCreated, "PUT", "/api/v1/skus/bad", `{"on_hand":1000,"strategy":"`+strategy+`"}`)
	shop.want(t, http.StatusCreated, "PUT", "/api/v1/skus/good", `{"on_hand":1000,"strategy":"conditional"}`)
	var unpaid []string // orders of the bad SKU
	for range 40 {
		unpaid = append(unpaid, served(t.Context(), client, shop.url, "bad").header.Get("Location"))
	}
	unlock := lockStock(t, s.database, "bad")
	crowd, leave := context.WithCancel(t.Context())
	defer leave()
	var buyers sync.WaitGroup
	defer buyers.Wait()
	for i := range 80 {
		buyers.Go(func() {
			for crowd.Err() == nil {
				a := purchase(crowd, client, shop.url, "bad")
				if i < len(unpaid) {
					ask(crowd, client, "POST", shop.url+unpaid[i]+"/pay", `{"payment_id":"p"}`)
				}
				if a.status != http.StatusCreated {
					select {
					case <-time.After(100 * time.Millisecond):
					case <-crowd.Done():
					}
				}
			}
		})
	}
	quickly := func(what string, want int, f func() answer) answer {
		t.Helper()
		before := stalls.total()
		a := f()
		if a.took -= stalls.total() - before; a.err != nil || a.status != want || a.took > most {
			t.Errorf("%s: %v, want %d within %v", what, a, want, most)
		}
		return a
	}
	for n := range 20 {
		order := quickly(fmt.Sprint("order ", n), http.StatusCreated, func() answer { return purchase(t.Context(), client, shop.url, "good") })
		path := shop.url + order.header.Get("Location")
		if order.status == http.StatusCreated {
			quickly("payment", http.StatusOK, func() answer { return ask(t.Context(), client, "POST", path+"/pay", `{"payment_id":"p"}`) })
			quickly("read", http.StatusOK, func() answer { return ask(t.Context(), client, "GET", path, "") })
		}
		quickly("readyz", http.StatusOK, func() answer { return ask(t.Context(), client, "GET", shop.url+"/readyz", "") })
	}
	leave()
	buyers.Wait()
	unlock()
	for _, path := range unpaid {
		shop.want(t, http.StatusOK, "POST", path+"/pay", `{"payment_id":"p"}`)
	}
	if a := insist(func() answer { return purchase(t.Context(), client, shop.url, "bad") }); a.status != http.StatusCreated {
		t.Errorf("the SKU once its row is free: %v", a)
	}
	for _, sku := range []string{"good", "bad"} {
		audited(t, books(t, s.database), sku)
	}
}
