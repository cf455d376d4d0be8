package blackbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// An older copy takes the place of a SQLite file while an instance sells, and another instance starts. The copy has all units
// that are left, so the first instance must not sell them too.
func TestReplacedFileSellsNoUnitTwice(t *testing.T) {
	t.Parallel()
	const units, before = 20, 3
	path := filepath.Join(t.TempDir(), "shop.db")
	one := open(t, "sqlite:"+path, "one")
	create(t, one, "a", "conditional", units)
	for range before {
		place(t, one, time.Hour, "a")
	}
	if _, err := rawDB(t, "sqlite:"+path).ExecContext(t.Context(), "VACUUM INTO ?", path+".copy"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(path+".copy", path); err != nil {
		t.Fatal(err)
	}
	two := open(t, "sqlite:"+path, "two")
	var sold [2]atomic.Int64
	var buyers []func() error
	for i := range 2 * units {
		buyers = append(buyers, func() error {
			r, err := placeOne(t.Context(), []*sqlstore.Store{one, two}[i%2], "a")
			if err == nil && r.Err == nil {
				sold[i%2].Add(1)
			}
			if i%2 == 0 && !errors.Is(err, stock.ErrUnavailable) {
				t.Errorf("the instance whose file was replaced: %v, %v", err, r.Err)
			}
			return nil
		})
	}
	_, over := startAll(buyers...)
	<-over
	for range units { // customer c1 may have been busy
		if r, err := placeOne(t.Context(), two, "a"); err == nil && r.Err == nil {
			sold[1].Add(1)
		}
	}
	if n, m := sold[0].Load(), sold[1].Load(); n != 0 || before+m != units {
		t.Errorf("%d units sold before, %d by the first instance and %d by the second one; want %d in all", before, n, m, units)
	}
	balanced(t, two, "a", units, 0)
}

// A SQLite file is moved away. The instance is not ready, refuses orders and creates no empty file, until the file is back.
func TestMovedFileRefusesOrders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	s := open(t, "sqlite:"+path, "one")
	create(t, s, "a", "conditional", 10)
	place(t, s, time.Hour, "a")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	for range 20 { // more than there are connections
		if _, err := placeOne(t.Context(), s, "a"); !errors.Is(err, stock.ErrUnavailable) || !errors.Is(err, sqldb.ErrMoved) {
			t.Errorf("order: %v", err)
		}
	}
	if ping, ready := s.Ping(t.Context()), s.Ready(t.Context()); !errors.Is(ping, sqldb.ErrMoved) || !errors.Is(ready, sqldb.ErrMoved) {
		t.Errorf("ping %v, ready %v", ping, ready)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new file: %v", err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	place(t, s, time.Hour, "a")
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	balanced(t, s, "a", 2, 0)
}
