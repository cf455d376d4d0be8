package blackbox_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// A primary is demoted, and the address leads new connections to its replica. The old connections stay open at a server
// that is read-only now. Orders are placed at the replica within 3 s, and none is lost or doubled: neither one that was
// about to commit, nor those that are placed meanwhile.
func TestSwitchOverBehindOneAddress(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		servers := testbedtest.StartReplicated(t, 2, nil)
		old, successor := servers[0], servers[1]
		proxy := testbedtest.StartProxy(t, old.Addr())
		address := url.URL{Scheme: "mysql", User: url.UserPassword("seller", "secret"), Host: proxy.Addr(), Path: testbed.DefaultDatabase}
		s := open(t, address.String(), "one")
		create(t, s, "a", "conditional", 1000)
		create(t, s, "b", "conditional", 1)
		placed := buyers(t, s, time.Minute) // every buyer has a connection
		last := request(1, "a")
		place := beforeCommit(t, address.String(), func(s *sqlstore.Store) error {
			return errors.Join(s.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, last)), last.Err)
		})
		restock := beforeCommit(t, address.String(), func(s *sqlstore.Store) error {
			_, err := s.Restock(t.Context(), "b", 7, nil)
			return err
		})
		written, await := "gtid_executed", "WAIT_FOR_EXECUTED_GTID_SET" // in the words of MySQL
		if mysql, err := old.IsMySQL(t.Context()); err != nil {
			t.Fatal(err)
		} else if !mysql {
			written, await = "gtid_binlog_pos", "MASTER_GTID_WAIT"
		}
		execAt(t, old, "SET GLOBAL read_only = 1")
		var position string
		if err := testbedtest.OpenSQL(t, old.URL()).QueryRowContext(t.Context(), "SELECT @@"+written).Scan(&position); err != nil {
			t.Fatal(err)
		}
		execAt(t, successor, "DO "+await+"('"+position+"', 60)", "STOP REPLICA", "SET GLOBAL read_only = 0")
		proxy.Lead(successor.Addr())
		if err := place(); err != nil {
			t.Errorf("the order that was about to commit: %v", err)
		}
		if err := restock(); err != nil {
			t.Errorf("the restock that was about to commit: %v", err)
		}
		placed = append(placed, last.Order.ID)

		placed = append(placed, buyers(t, s, 3*time.Second)...)
		placed = append(placed, buyers(t, s, 0)...) // and no connection to the old server is left that would refuse
		const stored = "SELECT id FROM orders ORDER BY id"
		now, before := rowsOf(t, successor, stored), rowsOf(t, old, stored)
		slices.Sort(placed)
		if !slices.Equal(placed, now) {
			t.Errorf("%d orders were placed, %d are stored", len(placed), len(now))
		}
		if slices.ContainsFunc(before, func(id string) bool { return !slices.Contains(now, id) }) {
			t.Error("the old server has an order that its successor lacks")
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != int64(len(placed)) {
			t.Errorf("%d placed: %+v %q", len(placed), a, a.Broken())
		}
		if a := auditOf(t, s, "b"); !a.OK() || a.Stocked != 8 {
			t.Errorf("restocked by 7: %+v %q", a, a.Broken())
		}
	})
}

// beforeCommit runs f with a store of its own, and returns when only COMMIT is missing. That is sent when finish is called.
func beforeCommit(t testing.TB, address string, f func(s *sqlstore.Store) error) (finish func() error) {
	t.Helper()
	stop, done := newGate(gate{after: "ledger"}), make(chan error, 1)
	s := open(t, address, "gated", stop)
	go func() { done <- f(s) }()
	<-stop.reached
	return func() error {
		close(stop.opened)
		return <-done
	}
}

// buyers has each of sixteen buyers place five orders at the same time. The first may be refused until the time is over.
func buyers(t testing.TB, s *sqlstore.Store, within time.Duration) (placed []string) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	end := time.Now().Add(within)
	for i := range 16 {
		all.Go(func() {
			for n := range 5 {
				r := request(1, "a")
				r.Order.CustomerID = fmt.Sprint("c", i)
				err := s.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, r))
				for n == 0 && err != nil && time.Now().Before(end) {
					r.Uncertain = errors.Is(err, order.ErrOutcomeUnknown)
					err = s.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, r))
				}
				if err = errors.Join(err, r.Err); err != nil {
					t.Errorf("order %d of buyer %d: %v", n, i, err)
					return
				}
				mu.Lock()
				placed = append(placed, r.Order.ID)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return placed
}

// execAt runs statements as root.
func execAt(t testing.TB, m *testbed.MariaDB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := testbedtest.OpenSQL(t, m.URL()).ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
