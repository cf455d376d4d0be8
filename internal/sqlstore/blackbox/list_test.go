package blackbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// many stores orders of one unit of sku that expire after ttl, and returns their ids.
func many(t testing.TB, s *sqlstore.Store, n int, customer, sku string, ttl time.Duration) (ids []string) {
	t.Helper()
	batch := make([]*order.Request, n)
	for i := range batch {
		batch[i] = request(1, sku)
		batch[i].Order.CustomerID, batch[i].TTL = customer, ttl
		ids = append(ids, batch[i].Order.ID)
	}
	for some := range slices.Chunk(batch, 500) {
		if err := s.Commit(t.Context(), &order.Batch{Claims: claim(sku, stock.RowLock, dlock.Fence{}), Requests: some}); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// pages reads all pages of f. between runs after each.
func pages(t *testing.T, s *sqlstore.Store, f order.Filter, between func()) (orders []order.Order, n int) {
	t.Helper()
	for {
		p, err := s.Orders(t.Context(), f)
		if err != nil || len(p.Orders) > f.Limit {
			t.Fatalf("%d orders of %d, %v", len(p.Orders), f.Limit, err)
		}
		n++
		orders = append(orders, p.Orders...)
		if p.Next == "" {
			return orders, n
		}
		if f.Before != "" && p.Next >= f.Before {
			t.Fatalf("the page behind %s leads to %s", f.Before, p.Next)
		}
		f.Before = p.Next
		between()
	}
}

// Every order is on exactly one page, latest first and as it reads alone, whatever filter is used and whatever is
// placed meanwhile.
func TestPagesAreCompleteAndStable(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		for _, sku := range []string{"a", "b"} {
			create(t, s, sku, "conditional", 100_000)
		}
		all := make(map[string]order.Order)
		add := func(ids ...string) {
			for _, id := range ids {
				o, err := s.Order(t.Context(), id, "")
				if err != nil {
					t.Fatal(err)
				}
				all[id] = o
			}
		}
		for range 2 {
			add(many(t, s, 7, "c1", "a", time.Hour)...)
			add(many(t, s, 7, "c2", "a", 0)...)
			paid, swept := many(t, s, 3, "c1", "b", time.Hour), many(t, s, 3, "c1", "b", 0)
			for _, id := range paid {
				if _, _, err := s.Settle(t.Context(), order.Target{ID: id}, order.Confirmed, "p1"); err != nil {
					t.Fatal(err)
				}
			}
			expire(t, s, swept...)
			add(paid...)
			add(swept...)
			add(place(t, s, time.Hour, "a", "b").ID, enqueue(t, s, "b", time.Hour).ID, enqueue(t, s, "b", 0).ID)
			rejected := enqueue(t, s, "b", time.Hour).ID
			if err := s.Reject(t.Context(), rejected, order.OutOfStock); err != nil {
				t.Fatal(err)
			}
			add(rejected)
		}
		for _, owner := range []string{"", "c1", "c2"} {
			for _, sku := range []string{"", "a", "b"} {
				for _, status := range append(order.Statuses(), "") {
					var want []order.Order
					for _, o := range all {
						if (owner == "" || o.CustomerID == owner) && (status == "" || o.Status == status) &&
							(sku == "" || slices.ContainsFunc(o.Items, func(it order.Item) bool { return it.SKU == sku })) {
							want = append(want, o)
						}
					}
					slices.SortFunc(want, func(a, b order.Order) int { return -cmpIDs(a, b) })
					got, _ := pages(t, s, order.Filter{Owner: owner, SKU: sku, Status: status, Limit: 5}, func() {
						add(many(t, s, 1, "c1", "a", time.Hour)...)
					})
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%q %q %q (-want +got):\n%s", owner, sku, status, diff)
					}
				}
			}
		}
	})
}

func cmpIDs(a, b order.Order) int {
	switch {
	case a.ID < b.ID:
		return -1
	case a.ID > b.ID:
		return 1
	}
	return 0
}

// bulk stores orders as rows, without stock and ledger.
func bulk(t *testing.T, db *gorm.DB, n int) {
	t.Helper()
	for n > 0 {
		some := min(n, 500)
		var orders, lines []string
		for range some {
			id := order.NewID()
			orders = append(orders, "('"+id+"', 'c1', 'PENDING', '', 1, 9000000000000000)")
			lines = append(lines, "('"+id+"', 'a', 1)")
		}
		for _, statement := range []string{
			"INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES " + strings.Join(orders, ", "),
			"INSERT INTO order_lines (order_id, sku, quantity) VALUES " + strings.Join(lines, ", "),
		} {
			if err := db.Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
		n -= some
	}
}

// A page does not look for a rare order among all: it is cut off and says how to go on.
func TestPageExaminesABoundedNumberOfOrders(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 100)
		create(t, s, "b", "conditional", 100)
		bulk(t, raw.db, 3999)
		first := many(t, s, 1, "c1", "b", 0)
		if err := raw.db.Exec("UPDATE orders SET id = '!' WHERE id = ?", first[0]).Error; err != nil { // before all others
			t.Fatal(err)
		}
		if err := raw.db.Exec("UPDATE order_lines SET order_id = '!' WHERE order_id = ?", first[0]).Error; err != nil {
			t.Fatal(err)
		}
		first[0] = "!"
		for _, want := range []int{2, 3} { // of 4,000 orders, and of one more
			for _, f := range []order.Filter{
				{Status: order.Expired}, {SKU: "b", Owner: "c1"}, {SKU: "b", Status: order.Expired, Owner: "c1"},
			} {
				f.Limit = 100
				got, n := pages(t, s, f, func() {})
				if len(got) != 1 || got[0].ID != first[0] || n != want {
					t.Errorf("%+v: %d orders on %d pages, want %d", f, len(got), n, want)
				}
				f.Before = first[0]
				if p, err := s.Orders(t.Context(), f); err != nil || len(p.Orders) > 0 || p.Next != "" {
					t.Errorf("behind the last: %+v, %v", p, err)
				}
			}
			many(t, s, 1, "c1", "a", time.Hour)
		}
		if got, n := pages(t, s, order.Filter{SKU: "b", Limit: 1}, func() {}); len(got) != 1 || n != 1 {
			t.Errorf("%d orders on %d pages by SKU", len(got), n)
		}
		for _, f := range []order.Filter{{Limit: 100}, {Limit: 100, Owner: "c1"}, {Limit: 100, SKU: "a"}, {Limit: 100, Status: order.Pending}} {
			if p, err := s.Orders(t.Context(), f); err != nil || len(p.Orders) != 100 || p.Next != p.Orders[99].ID {
				t.Errorf("%+v: %d orders, %v", f, len(p.Orders), err)
			}
		}
	})
}
