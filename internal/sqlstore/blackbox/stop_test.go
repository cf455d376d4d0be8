package blackbox_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// stopping returns a store with 5 units of "tea" on sale, and another store of the same database that has the plugin.
func stopping(t *testing.T, url string, plugin gorm.Plugin) (usual, stops *sqlstore.Store) {
	t.Helper()
	usual = open(t, url, "usual")
	create(t, usual, "tea", "conditional", 5)
	stops, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url, Instance: "stops", Plugins: []gorm.Plugin{plugin}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stops.Close(); err != nil {
			t.Error(err)
		}
	})
	return usual, stops
}

// orderTea orders one unit of "tea".
func orderTea(t *testing.T, s *sqlstore.Store, w stock.Update) {
	t.Helper()
	r := request(1, "tea")
	if err := s.Commit(t.Context(), &order.Batch{Claims: claim("tea", w, fence(1)), Requests: []*order.Request{r}}); err != nil || r.Err != nil {
		t.Errorf("order: %v, %v", err, r.Err)
	}
}

// reservedTea returns how many units of "tea" another transaction sees as reserved.
func reservedTea(t *testing.T, s *sqlstore.Store) int64 {
	t.Helper()
	l, err := s.Level(t.Context(), "tea")
	if err != nil {
		t.Error(err)
	}
	return l.Reserved
}

// An order that writes back what it has read is stopped between the two: it overwrites an order that is stored meanwhile.
func TestStopBeforeIsBetweenReadAndWrite(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		var usual, stops *sqlstore.Store
		calls := 0
		usual, stops = stopping(t, url, sqlstore.StopBefore(func() {
			calls++
			orderTea(t, usual, stock.Conditional)
		}))
		before := levelOf(t, usual, "tea").Version
		orderTea(t, stops, stock.WriteBack)
		if got := levelOf(t, usual, "tea").Version - before; got != 2 {
			t.Errorf("the version has grown by %d, want 2: the level of each change has a version of its own", got)
		}
		if got := auditOf(t, usual, "tea").LostUpdates(); calls != 1 || got != 1 {
			t.Errorf("%d calls and %d lost updates, want 1 and 1", calls, got)
		}
		orderTea(t, stops, stock.WriteBack)
		if calls != 1 {
			t.Errorf("%d calls after the second transaction, want 1", calls)
		}
	})
}

// The second stop is after the transaction has written and before others see that.
func TestStopAroundIsBeforeTheCommit(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		var usual, stops *sqlstore.Store
		type stop struct {
			Where    string
			Reserved int64
		}
		var got []stop
		note := func(where string) func() {
			return func() { got = append(got, stop{where, reservedTea(t, usual)}) }
		}
		usual, stops = stopping(t, url, sqlstore.StopAround(note("begin"), note("commit")))
		orderTea(t, stops, stock.Conditional)
		note("end")()
		orderTea(t, stops, stock.Conditional)
		if diff := cmp.Diff([]stop{{"begin", 0}, {"commit", 0}, {"end", 1}}, got); diff != "" {
			t.Errorf("stops and reserved units (-want +got):\n%s", diff)
		}
	})
}

// The stop is before the first statement with that part, and before no other one.
func TestStopBeforeStatementIsBeforeTheFirstOfItsKind(t *testing.T) {
	t.Parallel()
	for part, want := range map[string][]int64{"UPDATE skus SET reserved": {0}, "UPDATE no_such_table": nil} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, url string) {
				var usual, stops *sqlstore.Store
				var got []int64 // reserved units at each stop
				usual, stops = stopping(t, url, sqlstore.StopBeforeStatement(part, func() { got = append(got, reservedTea(t, usual)) }))
				orderTea(t, stops, stock.Fenced)
				orderTea(t, stops, stock.Fenced)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("reserved units at the stops (-want +got):\n%s", diff)
				}
				if got := reservedTea(t, usual); got != 2 {
					t.Errorf("%d units are reserved after two orders", got)
				}
			})
		})
	}
}
