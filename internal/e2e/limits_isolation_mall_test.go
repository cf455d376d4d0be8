package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
)

// mall is two instances that sell SKUs with a fault and SKUs without one. Orders of the first instance expire after
// shortLife, orders of the second one after an hour.
type mall struct {
	short, long *instance
	etcd        *testbed.Etcd
	redis       *testbed.Redis
	raw         *sql.DB
	books       *sqlstore.Store
	client      *http.Client
	stalls      *stallDetector
}

const shortLife = 2 * time.Second

func newMall(t *testing.T) *mall {
	t.Helper()
	database := testbedtest.Database(t)
	m := &mall{
		etcd: testbedtest.StartEtcd(t, testbed.EtcdConfig{}), redis: testbedtest.StartRedis(t, testbed.RedisConfig{}),
		client: customers(t), stalls: detectStalls(t), raw: testbedtest.OpenSQL(t, database), books: books(t, database),
	}
	flags := []string{"--database", database, "--redis", m.redis.URL(), "--etcd", m.etcd.Addr(), "--max-open-orders", "1000000"}
	m.short = spawn(t, append(flags, "--instance", "short", "--order-ttl", shortLife.String())...)
	m.long = spawn(t, append(flags, "--instance", "long", "--order-ttl", "1h")...)
	return m
}

// sku creates a SKU with plenty of units.
func (m *mall) sku(t *testing.T, name, strategy string) {
	t.Helper()
	m.long.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+name, `{"on_hand":100000000,"strategy":"`+strategy+`"}`)
}

func (m *mall) order(ctx context.Context, url, sku, customer string) answer {
	return ask(ctx, m.client, "POST", url+"/api/v1/orders", fmt.Sprintf(`{"customer_id":%q,"items":[{"sku":%q,"quantity":1}]}`, customer, sku))
}

// throng has n customers do something until ctx ends. A customer that is refused comes back when the answer says, or after atMost.
func throng(ctx context.Context, n int, atMost time.Duration, what func(ctx context.Context, i int) answer) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				a := what(ctx, i)
				pause := time.Duration(testbedtest.Size(200, 5)) * time.Millisecond
				if a.err != nil || a.status >= 400 {
					pause = atMost
					if after, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
						pause = min(pause, time.Duration(after)*time.Second)
					}
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	return &all
}

// comesBack is how long a customer who was refused stays away.
func comesBack() time.Duration { return time.Duration(testbedtest.Size(2000, 100)) * time.Millisecond }

// trade is what the customers of SKUs without a fault got in some seconds.
type trade struct {
	asked, sold, unready int
	took                 []time.Duration // to order, pay and read, from the moment at which the customer came
	late                 []time.Duration // of orders that nobody paid: from their end to the release of their units
	odd                  []string        // answers other than wanted
}

func (d trade) speed() float64 { return float64(d.sold) / float64(d.asked) }

// window has customers come at a fixed rate to buy skus, pay and read. Every fifth does not pay. It returns when all unpaid orders have
// expired.
func (m *mall) window(t *testing.T, length time.Duration, perSecond int, skus ...string) (d trade) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	odd := func(what string, a answer) {
		mu.Lock()
		defer mu.Unlock()
		d.odd = append(d.odd, what+": "+a.String())
	}
	var unpaid []string
	watch, stop := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	for _, s := range []*instance{m.short, m.long} {
		watcher.Go(func() {
			m.watchReadiness(watch, s.url, func(a answer) {
				odd("readyz", a)
				mu.Lock()
				defer mu.Unlock()
				d.unready++
			})
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		n := d.asked
		d.asked++
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			came, sku, customer := time.Now(), skus[n%len(skus)], fmt.Sprint("neighbour-", n%50)
			if n%5 == 4 {
				a := m.order(ctx, m.short.url, sku, customer)
				if a.status != http.StatusCreated {
					odd("order", a)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				unpaid = append(unpaid, strings.TrimPrefix(a.header.Get("Location"), "/api/v1/orders/"))
				d.sold++
				return
			}
			a := m.order(ctx, m.long.url, sku, customer)
			path := m.long.url + a.header.Get("Location")
			if a.status == http.StatusCreated {
				a = ask(ctx, m.client, "POST", path+"/pay", `{"payment_id":"p"}`)
			}
			if a.status == http.StatusOK {
				a = ask(ctx, m.client, "GET", path, "")
			}
			if a.status != http.StatusOK {
				odd("order, payment or read", a)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			d.sold++
			d.took = append(d.took, time.Since(came))
		})
	}
	all.Wait()
	d.late = m.expiries(t, unpaid)
	stop()
	watcher.Wait()
	return d
}

// watchReadiness calls unready each time that an instance says it is not ready, until ctx ends.
func (m *mall) watchReadiness(ctx context.Context, url string, unready func(a answer)) {
	for ctx.Err() == nil {
		if a := ask(ctx, m.client, "GET", url+"/readyz", ""); a.status != http.StatusOK && ctx.Err() == nil {
			unready(a)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// expiries waits until orders have expired, and returns how late each was.
func (m *mall) expiries(t *testing.T, ids []string) (late []time.Duration) {
	t.Helper()
	if len(ids) == 0 {
		return nil
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	query := "SELECT l.created_at - o.expires_at FROM orders o JOIN ledger l ON l.order_id = o.id AND l.movement = 'RELEASE'" +
		" WHERE o.id IN (?" + strings.Repeat(", ?", len(ids)-1) + ")"
	testbedtest.Eventually(t, "units of unpaid orders are free again", func() bool {
		late = nil
		rows, err := m.raw.QueryContext(t.Context(), query, args...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var us int64
			if err := rows.Scan(&us); err != nil {
				t.Fatal(err)
			}
			late = append(late, time.Duration(us)*time.Microsecond)
		}
		return rows.Err() == nil && len(late) == len(ids)
	})
	return late
}

// back waits until no order of a SKU is open past its time, and returns how long that took.
func (m *mall) back(t *testing.T, sku string) time.Duration {
	t.Helper()
	began := time.Now()
	testbedtest.Eventually(t, "all overdue units of "+sku+" are free again", func() bool {
		var n int
		err := m.raw.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders o JOIN order_lines l ON l.order_id = o.id WHERE l.sku = ? AND o.status = 'PENDING'"+
			" AND o.expires_at < UNIX_TIMESTAMP(NOW(6)) * 1000000", sku).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	return time.Since(began)
}

// lockRows keeps rows locked in a session that is none of the shop's.
func (m *mall) lockRows(t *testing.T, query string, args ...any) (release func()) {
	t.Helper()
	// As the shop's sessions: no gaps are locked, which would stop all inserts.
	tx, err := m.raw.BeginTx(context.WithoutCancel(t.Context()), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { tx.Rollback() })
	t.Cleanup(release)
	if _, err := tx.ExecContext(t.Context(), "SET SESSION idle_transaction_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.QueryContext(t.Context(), query+" FOR UPDATE", args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		continue
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return release
}

// unpaid places orders of a SKU that live for an hour.
func (m *mall) unpaid(t *testing.T, sku string, n int) (paths []string) {
	t.Helper()
	for i := range n {
		a := insist(func() answer { return m.order(t.Context(), m.long.url, sku, fmt.Sprint("debtor-", i)) })
		if a.status != http.StatusCreated {
			t.Fatal(a)
		}
		paths = append(paths, a.header.Get("Location"))
	}
	return paths
}

// instance returns one of the two in turn.
func (m *mall) instance(i int) string { return []string{m.short.url, m.long.url}[i%2] }
