package sqlstore_test

import (
	"errors"
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
		if err := s.Commit(t.Context(), claim(sku, stock.RowLock, dlock.Fence{}), some); err != nil {
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

// Every order that was there is on exactly one page, latest first and as it reads alone,
// whatever is placed meanwhile and however the orders are chosen.
func TestPagesAreCompleteAndStable(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		for _, sku := range []string{"a", "b", "c"} {
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
		for _, owner := range []string{"", "c1", "c2", "nobody"} {
			for _, sku := range []string{"", "a", "b", "c"} {
				for _, status := range append(order.Statuses(), "") {
					var want []order.Order
					for _, o := range all {
						if (owner == "" || o.CustomerID == owner) && (status == "" || o.Status == status) &&
							(sku == "" || slices.ContainsFunc(o.Items, func(it order.Item) bool { return it.SKU == sku })) {
							want = append(want, o)
						}
					}
					slices.SortFunc(want, func(a, b order.Order) int { return -cmpIDs(a, b) })
					got, _ := pages(t, s, order.Filter{Owner: owner, SKU: sku, Status: status, Limit: 4}, func() {
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

// bulk stores orders as rows, beside the books.
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

// Orders of others are not there, whatever is asked for, and nothing happens to them.
func TestOwnersSeeTheirOrdersOnly(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 9)
		pending, queued := place(t, s, time.Hour, "a"), enqueue(t, s, "a", time.Hour)
		for _, o := range []order.Order{pending, queued} {
			for _, id := range []string{o.ID, order.NewID()} {
				for _, owner := range []string{"c2", "C1", "c", "' OR '1'='1"} {
					target := order.Target{ID: id, Owner: owner, Once: keyed("POST /"+id, owner, "")}
					for name, do := range map[string]func() error{
						"order":  func() error { _, err := s.Order(ctx, id, owner); return err },
						"events": func() error { _, err := s.Events(ctx, id, owner); return err },
						"pay":    func() error { _, _, err := s.Settle(ctx, target, order.Confirmed, "p1"); return err },
						"cancel": func() error { _, _, err := s.Settle(ctx, target, order.Cancelled, ""); return err },
						"extend": func() error { _, _, err := s.Extend(ctx, target, time.Minute, 4*time.Hour); return err },
					} {
						if err := do(); !errors.Is(err, order.ErrNotFound) {
							t.Errorf("%s by %q: %v", name, owner, err)
						}
					}
					if p, err := s.Orders(ctx, order.Filter{Owner: owner, Limit: 10}); err != nil || len(p.Orders) != 0 {
						t.Errorf("%q sees %+v, %v", owner, p, err)
					}
				}
			}
			if got, err := s.Order(ctx, o.ID, "c1"); err != nil || cmp.Diff(o, got) != "" {
				t.Errorf("%+v became %+v, %v", o, got, err)
			}
		}
		mine := order.Target{ID: pending.ID, Owner: "c1"}
		if _, changed, err := s.Extend(ctx, mine, time.Minute, 4*time.Hour); err != nil || !changed {
			t.Error(changed, err)
		}
		if _, changed, err := s.Settle(ctx, mine, order.Cancelled, ""); err != nil || !changed {
			t.Error(changed, err)
		}
		balanced(t, s, "a", 0, 0)
	})
}

// The history of an order is what the ledger says, in its order.
func TestEvents(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "redis", 9)
		create(t, s, "b", "redis", 9)
		r := request(2, "a", "b")
		claims := append(claim("a", stock.Fenced, fence(7)), claim("b", stock.Conditional, dlock.Fence{})...)
		if err := s.Commit(ctx, claims, []*order.Request{r}); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		place(t, s, time.Hour, "a")
		if _, _, err := open(t, url, "two").Settle(ctx, order.Target{ID: r.Order.ID}, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		events, err := s.Events(ctx, r.Order.ID, "c1")
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			if e.At.Before(r.Order.CreatedAt) || time.Since(e.At) > time.Hour {
				t.Errorf("%d: at %v", i, e.At)
			}
			events[i].At = time.Time{}
		}
		want := []order.Event{
			{Movement: stock.Reserve, SKU: "a", Quantity: 2, Fence: 7, Instance: "one"},
			{Movement: stock.Reserve, SKU: "b", Quantity: 2, Instance: "one"},
			{Movement: stock.Confirm, SKU: "a", Quantity: 2, Instance: "two"},
			{Movement: stock.Confirm, SKU: "b", Quantity: 2, Instance: "two"},
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
