package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// mishap is something that happens to the SKU that is returned by prepare.
type mishap struct {
	name  string
	sku   string
	redis bool // it is that Redis is dead, which SKUs that need Redis share
	begin func(ctx context.Context, t *testing.T) (end func())
}

// lockedRow: its stock row is locked, and many buy it and pay for it.
func (m *mall) lockedRow(t *testing.T, strategy string) mishap {
	t.Helper()
	sku := "locked-" + strategy
	m.sku(t, sku, strategy)
	debts := m.unpaid(t, sku, 40)
	return mishap{strategy + ": the stock row is locked; 80 buyers, 40 payers", sku, false, func(ctx context.Context, t *testing.T) func() {
		t.Helper()
		for i := range 20 { // they expire while the row is locked
			insist(func() answer { return m.order(t.Context(), m.short.url, sku, fmt.Sprint("debtor-", i)) })
		}
		release := m.lockRows(t, "SELECT sku FROM skus WHERE sku = ?", sku)
		buyers := throng(ctx, 80, comesBack(), func(ctx context.Context, i int) answer {
			return m.order(ctx, m.instance(i), sku, fmt.Sprint("buyer-", i))
		})
		payers := throng(ctx, 40, comesBack(), func(ctx context.Context, i int) answer {
			return ask(ctx, m.client, "POST", m.instance(i)+debts[i]+"/pay", `{"payment_id":"p"}`)
		})
		return func() { buyers.Wait(); payers.Wait(); release() }
	}}
}

// lockedBasket: its stock row is locked, and ten buy it together with another SKU.
func (m *mall) lockedBasket(t *testing.T, strategy, other string) mishap {
	t.Helper()
	sku := "locked-basket"
	m.sku(t, sku, strategy)
	return mishap{strategy + ": the stock row is locked; 10 buyers of it and another SKU in one order", sku, false, func(ctx context.Context, t *testing.T) func() {
		t.Helper()
		release := m.lockRows(t, "SELECT sku FROM skus WHERE sku = ?", sku)
		buy := func(ctx context.Context, i int) answer {
			return ask(ctx, m.client, "POST", m.instance(i)+"/api/v1/orders",
				fmt.Sprintf(`{"customer_id":"buyer-%d","items":[{"sku":%q,"quantity":1},{"sku":%q,"quantity":1}]}`, i, sku, other))
		}
		buyers := throng(ctx, 10, comesBack(), buy)
		return func() {
			buyers.Wait()
			release()
			if a := insist(func() answer { return buy(t.Context(), 0) }); a.status != http.StatusCreated {
				t.Errorf("once the row is free: %v", a)
			}
		}
	}}
}

// lockedOrders: the rows of its orders are locked, and many pay for them and read them.
func (m *mall) lockedOrders(t *testing.T) mishap {
	t.Helper()
	sku := "locked-orders"
	m.sku(t, sku, "conditional")
	debts := m.unpaid(t, sku, 80)
	return mishap{"the rows of 80 of its orders are locked; each is paid and extended", sku, false, func(ctx context.Context, t *testing.T) func() {
		t.Helper()
		release := m.lockRows(t, "SELECT o.id FROM orders o JOIN order_lines l ON l.order_id = o.id WHERE l.sku = ?", sku)
		payers := throng(ctx, 80, comesBack(), func(ctx context.Context, i int) answer {
			return ask(ctx, m.client, "POST", m.instance(i)+debts[i]+"/pay", `{"payment_id":"p"}`)
		})
		extenders := throng(ctx, 80, comesBack(), func(ctx context.Context, i int) answer {
			return ask(ctx, m.client, "POST", m.instance(i)+debts[i]+"/extend", `{"by_seconds":1}`)
		})
		return func() { payers.Wait(); extenders.Wait(); release() }
	}}
}

// lockedCustomer: the row of a customer is locked who buys it, and the other SKUs as well.
func (m *mall) lockedCustomer(t *testing.T, others ...string) mishap {
	t.Helper()
	sku := "locked-customer"
	m.sku(t, sku, "conditional")
	for i := range 80 {
		insist(func() answer { return m.order(t.Context(), m.short.url, sku, fmt.Sprint("frozen-", i)) })
	}
	return mishap{"the rows of 80 of its customers are locked; they buy all SKUs", sku, false, func(ctx context.Context, t *testing.T) func() {
		t.Helper()
		release := m.lockRows(t, "SELECT customer_id FROM customer_usage WHERE customer_id LIKE 'frozen-%'")
		skus := append([]string{sku}, others...)
		buyers := throng(ctx, 80, comesBack(), func(ctx context.Context, i int) answer {
			return m.order(ctx, m.instance(i), skus[i%len(skus)], fmt.Sprint("frozen-", i))
		})
		return func() { buyers.Wait(); release() }
	}}
}

// deadService: its lock service does not answer.
func (m *mall) deadService(t *testing.T, strategy string, pause, resume func() error) mishap {
	t.Helper()
	sku := "dead-" + strategy
	m.sku(t, sku, strategy)
	return mishap{strategy + ": the lock service is paused; 80 buyers", sku, strategy != "etcd", func(ctx context.Context, t *testing.T) func() {
		t.Helper()
		must(t, pause())
		buyers := throng(ctx, 80, comesBack(), func(ctx context.Context, i int) answer {
			return m.order(ctx, m.instance(i), sku, fmt.Sprint("buyer-", i))
		})
		return func() { buyers.Wait(); must(t, resume()) }
	}}
}

// flashSale: very many buy it.
func (m *mall) flashSale(t *testing.T, strategy string, n int) mishap {
	t.Helper()
	sku := "hot-" + strategy
	m.sku(t, sku, strategy)
	return mishap{fmt.Sprintf("%s: a flash sale with %d buyers", strategy, n), sku, false, func(ctx context.Context, t *testing.T) func() {
		t.Helper()
		return throng(ctx, n, time.Minute, func(ctx context.Context, i int) answer {
			return m.order(ctx, m.instance(i), sku, fmt.Sprint("buyer-", i))
		}).Wait
	}}
}

// onlookers buy nothing. They ask for an answer that needs no store, so all they take is processor time. The row of the
// flash sales without the sale.
func (m *mall) onlookers(t *testing.T, n int) mishap {
	t.Helper()
	m.sku(t, "watched", "conditional")
	return mishap{fmt.Sprintf("nothing; %d customers ask whether the instance lives", n), "watched", false, func(ctx context.Context, t *testing.T) func() {
		t.Helper()
		return throng(ctx, n, time.Minute, func(ctx context.Context, i int) answer {
			return ask(ctx, m.client, "GET", m.instance(i)+"/livez", "")
		}).Wait
	}}
}

// massExpiry: very many of its orders expire at the same time.
func (m *mall) massExpiry(t *testing.T, n int, locked bool) mishap {
	t.Helper()
	sku, name := "mass-expiry", fmt.Sprintf("%d of its orders expire at once", n)
	if locked {
		sku, name = sku+"-locked", name+" while its row is locked"
	}
	m.sku(t, sku, "conditional")
	return mishap{name, sku, false, func(_ context.Context, t *testing.T) func() {
		t.Helper()
		end := time.Now().Add(time.Second + time.Duration(n)*time.Second/2000)
		for left := n; left > 0; left -= 200 {
			var requests []*order.Request
			for i := range min(left, 200) {
				requests = append(requests, &order.Request{TTL: time.Until(end), Order: order.Order{
					ID: order.NewID(), CustomerID: fmt.Sprint("buyer-", i), Items: []order.Item{{SKU: sku, Quantity: 1}},
				}})
			}
			must(t, m.books.Commit(t.Context(), &order.Batch{Claims: []stock.Claim{{SKU: sku, Update: stock.Conditional}}, Requests: requests}))
		}
		if !locked {
			return func() {}
		}
		return m.lockRows(t, "SELECT sku FROM skus WHERE sku = ?", sku)
	}}
}

// dead returns how many timers were given up.
func (m *mall) dead(t *testing.T) (n int) {
	t.Helper()
	if err := m.raw.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM timeouts WHERE state = 'DEAD'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
