package blackbox_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// everything is an age with which all orders that are final are old.
const everything = -2 * time.Hour

// purge deletes old orders, and returns how many. A purge that fails has deleted some.
func purge(t testing.TB, s *sqlstore.Store, age time.Duration) (n int64) {
	t.Helper()
	_, err := insist(t.Context(), func() (any, error) {
		some, err := s.PurgeOrders(t.Context(), nil, age)
		n += some
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// endedOrder places an order of the customer c1, and ends it unless it shall be pending.
func endedOrder(t testing.TB, s *sqlstore.Store, to order.Status, skus ...string) string {
	t.Helper()
	if to == order.Expired {
		o := place(t, s, 0, skus...)
		expire(t, s, o.ID)
		return o.ID
	}
	o := place(t, s, time.Hour, skus...)
	if to != order.Pending {
		if err := settle(t.Context(), s, o.ID, to, "p"); err != nil {
			t.Fatal(err)
		}
	}
	return o.ID
}

// allAudits returns the audits of everything, and those of what was written since the last one, which agree and are right.
func allAudits(t testing.TB, s *sqlstore.Store, right func(stock.Audit) bool) []stock.Audit {
	t.Helper()
	recent, err := s.AuditRecent(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Audit(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, recent, cmpopts.IgnoreFields(stock.Audit{}, "RightTo", "RightAt", "Checked")); diff != "" {
		t.Errorf("-all +recent: %s", diff)
	}
	for i := range all {
		if all[i].OK() != right(all[i]) {
			t.Errorf("%+v %q", all[i], all[i].Broken())
		}
		all[i].Checked = 0
	}
	return all
}

func isRight(stock.Audit) bool { return true }

// A purge deletes final orders that are old, with their items and entries, and nothing else: not those that are open, young, count for
// a purchase limit, or are of a SKU whose books are wrong. The audits say the same before and after, and so do limits.
func TestPurgeDeletesOldFinalOrders(t *testing.T) {
	t.Parallel()
	variants(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 100)
		create(t, s, "b", "conditional", 100)
		create(t, s, "wrong", "conditional", 100)
		limited(t, s, "few", "conditional", 100, 3)
		goes, stays := make(map[string]string), make(map[string]string)
		for _, to := range []order.Status{order.Confirmed, order.Cancelled, order.Expired} {
			goes[string(to)], goes["basket "+string(to)] = endedOrder(t, s, to, "a"), endedOrder(t, s, to, "a", "b")
			stays["wrong "+string(to)] = endedOrder(t, s, to, "a", "wrong")
		}
		goes["limit "+string(order.Cancelled)] = endedOrder(t, s, order.Cancelled, "few")
		stays["limit "+string(order.Confirmed)] = endedOrder(t, s, order.Confirmed, "a", "few")
		stays[string(order.Pending)] = endedOrder(t, s, order.Pending, "a")
		rejected := enqueue(t, s, "a", time.Hour)
		if err := raw.db.Exec("UPDATE orders SET status = ?, reason = ? WHERE id = ?", order.Rejected, order.NotInTime, rejected.ID).Error; err != nil {
			t.Fatal(err)
		}
		goes[string(order.Rejected)] = rejected.ID
		if err := raw.db.Exec("UPDATE orders SET created_at = created_at - ?, expires_at = expires_at - ?", day, day).Error; err != nil {
			t.Fatal(err)
		}
		if err := raw.db.Exec("UPDATE orders SET expires_at = expires_at + ? WHERE status = 'PENDING'", day).Error; err != nil {
			t.Fatal(err)
		}
		stays["young"] = endedOrder(t, s, order.Confirmed, "a")
		if err := raw.db.Exec("UPDATE orders SET expires_at = expires_at - ? WHERE id = ?", day/2, stays["young"]).Error; err != nil {
			t.Fatal(err)
		}
		if err := raw.db.Exec("UPDATE skus SET on_hand = on_hand + 1, version = version + 1 WHERE sku = 'wrong'").Error; err != nil {
			t.Fatal(err)
		}
		right := func(a stock.Audit) bool { return a.SKU != "wrong" }
		before := allAudits(t, s, right)
		if n := purge(t, s, 22*time.Hour); n != int64(len(goes)) {
			t.Errorf("%d orders deleted, want %d", n, len(goes))
		}
		if diff := cmp.Diff(before, allAudits(t, s, right), cmpopts.IgnoreFields(stock.Audit{}, "RightAt")); diff != "" {
			t.Errorf("-before +after: %s", diff)
		}
		if n := purge(t, s, 22*time.Hour); n != 0 {
			t.Errorf("%d orders deleted by a second purge", n)
		}
		for what, id := range goes {
			if _, err := s.Order(t.Context(), id, ""); !errors.Is(err, order.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
			for _, table := range []string{"ledger", "order_lines"} {
				var n int64
				if err := raw.db.Raw("SELECT COUNT(*) FROM "+table+" WHERE order_id = ?", id).Scan(&n).Error; err != nil || n > 0 {
					t.Errorf("%s: %d rows in %s, %v", what, n, table, err)
				}
			}
		}
		for what, id := range stays {
			if _, err := s.Order(t.Context(), id, ""); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		over := request(3, "few") // and has one
		_, isOver := errors.AsType[*order.LimitError](errors.Join(commitAlone(t, s, conditionally("few"), over), over.Err))
		if !isOver {
			t.Errorf("over the limit: %v", over.Err)
		}
	})
}

const day = int64(24 * time.Hour / time.Microsecond)

// Two purges at once delete during a sale, in which orders are paid, cancelled and expire. At each moment the audits agree with the
// orders that were paid.
func TestPurgeDuringASale(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) { purgeDuringASale(t, url) })
}

// purgeDuringASale sells at all of these nodes of one database.
func purgeDuringASale(t *testing.T, urls ...string) {
	t.Helper()
	var stores []*sqlstore.Store
	for i, url := range urls {
		stores = append(stores, open(t, url, fmt.Sprint("shop-", i+1)))
	}
	s := stores[0]
	limited(t, s, "a", "conditional", 10_000, 500)
	limited(t, s, "b", "conditional", 10_000, 500)
	create(t, s, "free", "conditional", 10_000)
	for _, url := range urls[1:] {
		catchUp(t, url)
	}
	var sale, others sync.WaitGroup
	over := make(chan struct{})
	for side := range 6 {
		sale.Go(func() {
			for n := range 40 {
				changeOne(t, stores[side%len(stores)], side, n)
			}
		})
	}
	deleted := make([]int64, 2)
	for i := range deleted {
		mine := open(t, urls[(i+1)%len(urls)], fmt.Sprint("purge-", i))
		others.Go(func() {
			for sold := true; sold; {
				select {
				case <-over:
					sold = false
				default:
				}
				deleted[i] += purge(t, mine, everything)
				for _, a := range []stock.Audit{auditOf(t, mine, "free"), auditOf(t, mine, "a")} {
					if !a.OK() {
						t.Errorf("%+v %q", a, a.Broken())
					}
				}
			}
		})
	}
	sale.Wait()
	close(over)
	others.Wait()
	// Of 40 numbers 1, 11 and 31 are paid, the first of them with a limit.
	want := map[string]int64{"a": 6, "b": 6, "free": 6 * 2}
	for _, a := range allAudits(t, s, isRight) {
		if n, mine := want[a.SKU]; mine && (a.Sold != n || a.Open != 0 || a.Stocked != 10_000) {
			t.Errorf("%+v: want %d sold", a, n)
		}
		delete(want, a.SKU)
	}
	if len(want) > 0 {
		t.Errorf("no audit of %v", want)
	}
	if n := deleted[0] + deleted[1]; n != 6*(40-1) {
		t.Errorf("%d orders deleted", n)
	}
}

// A purge that ends before any of its statements leaves books that are right, and the next purge does the rest.
func TestPurgeThatEndsAtAnyStatement(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s, faulty := open(t, url, "one"), new(faultAt)
		purging := open(t, url, "purge", faulty)
		create(t, s, "a", "conditional", 1000)
		create(t, s, "b", "conditional", 1000)
		for at := 1; ; at++ {
			for _, to := range []order.Status{order.Confirmed, order.Cancelled, order.Expired} {
				endedOrder(t, s, to, "a", "b")
			}
			before := allAudits(t, s, isRight)
			faulty.begin(at)
			n, err := purging.PurgeOrders(t.Context(), nil, everything)
			failed := errors.Is(err, errFault)
			if !failed && err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, allAudits(t, s, isRight), cmpopts.IgnoreFields(stock.Audit{}, "RightAt")); diff != "" {
				t.Fatalf("a fault at statement %d: -before +after: %s", at, diff)
			}
			if n += purge(t, s, everything); n != 3 {
				t.Errorf("a fault at statement %d: %d deleted, want 3", at, n)
			}
			if !failed {
				if at < 10 {
					t.Errorf("%d statements", at)
				}
				break
			}
		}
	})
}

var errFault = errors.New("fault")

// faultAt is a gorm plugin that fails a statement instead of executing it.
type faultAt struct {
	mu   sync.Mutex
	left int // statements to the fault
}

func (f *faultAt) begin(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = n
}

func (*faultAt) Name() string { return "fault" }

func (f *faultAt) Initialize(db *gorm.DB) error {
	fail := func(tx *gorm.DB) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.left--; f.left == 0 {
			_ = tx.AddError(errFault)
		}
	}
	return errors.Join(db.Callback().Raw().Before("gorm:raw").Register("fault:raw", fail), db.Callback().Row().Before("gorm:row").Register("fault:row", fail))
}

// While an audit reads, or is about to store its checkpoint, another audit stores a later one, and the entries up to there are deleted.
// The first audit finds nothing wrong, nor does the next one.
func TestPurgeDuringAnAudit(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"reads": "AS fence_steps_back", "stores": "INSERT INTO audits "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testbedtest.Database(t)
			s := open(t, url, "one")
			create(t, s, "a", "conditional", 100)
			recentOf(t, s)
			endedOrder(t, s, order.Confirmed, "a")
			g := newGate(gate{before: before})
			slow := open(t, url, "slow", g)
			var late stock.Audit
			done := make(chan struct{})
			go func() {
				defer close(done)
				late = recentOf(t, slow)
			}()
			wait(t, "the audit to have read the checkpoint", g.reached)
			endedOrder(t, s, order.Confirmed, "a")
			recentOf(t, s)
			if n := purge(t, s, everything); n != 2 {
				t.Errorf("%d deleted", n)
			}
			endedOrder(t, s, order.Confirmed, "a")
			close(g.opened)
			wait(t, "the audit", done)
			for _, a := range append([]stock.Audit{late}, allAudits(t, s, isRight)...) {
				if !a.OK() {
					t.Errorf("%+v %q", a, a.Broken())
				}
			}
		})
	}
}

// An order whose status was changed by hand, below the checkpoint, stays as evidence.
func TestPurgeKeepsAnOrderThatContradictsItsEntries(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 100)
		id := endedOrder(t, s, order.Confirmed, "a")
		recentOf(t, s)
		if err := raw.db.Exec("UPDATE orders SET status = 'CANCELLED' WHERE id = ?", id).Error; err != nil {
			t.Fatal(err)
		}
		if n := purge(t, s, everything); n != 0 {
			t.Errorf("%d deleted", n)
		}
		if a := auditOf(t, s, "a"); a.OK() {
			t.Errorf("%+v", a)
		}
	})
}

// Units that a later entry adds or hides are no units that deleted orders have bought, and an audit finds them.
func TestAuditFindsAWrongRestock(t *testing.T) {
	t.Parallel()
	for _, units := range []int{3, -3} {
		engines(t, func(t *testing.T, url string) {
			raw := new(handle)
			s := open(t, url, "one", raw)
			create(t, s, "a", "conditional", 10)
			if _, err := s.Restock(t.Context(), "a", 10, nil); err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{
				"UPDATE ledger SET on_hand = on_hand + ? WHERE id > (SELECT id FROM (SELECT MIN(id) AS id FROM ledger) f)",
				"UPDATE skus SET on_hand = on_hand + ?, version = version + 1",
			} {
				if err := raw.db.Exec(statement, units).Error; err != nil {
					t.Fatal(err)
				}
			}
			if a := auditOf(t, s, "a"); a.OK() {
				t.Errorf("of everything: %+v", a)
			}
			if a := recentOf(t, s); a.OK() {
				t.Errorf("%+v", a)
			}
		})
	}
}

// The greatest token stays known when the order that had it is deleted.
func TestAuditAfterAPurgeKnowsTheLatestToken(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 10)
		endedOrder(t, s, order.Cancelled, "a")
		if err := raw.db.Exec("UPDATE ledger SET fence = 9 WHERE movement = 'RESERVE'").Error; err != nil {
			t.Fatal(err)
		}
		if _, err := s.Restock(t.Context(), "a", 10, nil); err != nil { // the latest entry stays
			t.Fatal(err)
		}
		recentOf(t, s)
		if n := purge(t, s, everything); n != 1 {
			t.Fatalf("%d orders deleted", n)
		}
		auditOf(t, s, "a")
		endedOrder(t, s, order.Cancelled, "a")
		if err := raw.db.Exec("UPDATE ledger SET fence = 3 WHERE movement = 'RESERVE'").Error; err != nil {
			t.Fatal(err)
		}
		if a := recentOf(t, s); a.FenceStepsBack != 1 {
			t.Errorf("%+v", a)
		}
	})
}
