package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// table is rows for tests. A probe takes two seconds.
type table struct {
	mu      sync.Mutex
	locked  map[string]bool  // guarded by mu: for good
	wanted  map[string]bool  // guarded by mu: never free at the moment of a look
	version map[string]int64 // guarded by mu
	looks   int              // guarded by mu
}

func (r *table) probe(_ context.Context, sku string) error {
	time.Sleep(2 * time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.locked[sku] {
		return errLockTimeout
	}
	return nil
}

func (r *table) look(_ context.Context, skus []string) (map[string]sight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks++; r.looks%2 == 0 {
		return nil, mysql.ErrInvalidConn
	}
	seen := make(map[string]sight)
	for _, sku := range skus {
		seen[sku] = sight{version: 1 + r.version[sku], free: !r.locked[sku] && !r.wanted[sku]}
	}
	return seen, nil
}

// change lets f change the table.
func (r *table) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func newTable() *table {
	return &table{locked: make(map[string]bool), wanted: make(map[string]bool), version: make(map[string]int64)}
}

// A lock timeout of a basket has both of its rows probed. Only the one that is locked is refused, to those in line as well, and
// only until it is free.
func TestProbeFindsTheLockedRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newTable()
		r.locked["bad"] = true
		b := newBulkheads(t.Context(), 2, r)
		defer b.close()
		do := func(skus ...string) error { return b.at(t.Context(), skus, nothing) }
		for range 2 { // they have the places until the row is known to be locked
			go b.at(t.Context(), []string{"bad"}, func(*places) error {
				time.Sleep(10 * time.Second)
				return nil
			})
		}
		synctest.Wait()
		timesOut := func(*places) error { return errLockTimeout }
		if err := b.at(t.Context(), []string{"good"}, timesOut); !errors.Is(err, errLockTimeout) {
			t.Error(err)
		}
		b.suspect([]string{"bad", "good"})
		inLine := make(chan error, 2)
		for _, skus := range [][]string{{"bad"}, {"bad", "good"}} {
			go func() { inLine <- do(skus...) }()
		}
		synctest.Wait()
		for range 10 {
			if err := do("good"); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		for range 2 {
			if err := <-inLine; !errors.Is(err, stock.ErrRowLocked) {
				t.Errorf("in line: %v", err)
			}
		}
		for _, skus := range [][]string{{"bad"}, {"bad", "good"}} {
			began := time.Now()
			if err := do(skus...); !errors.Is(err, stock.ErrRowLocked) || !errors.Is(err, stock.ErrBusy) || time.Since(began) > 0 {
				t.Errorf("%q: %v after %v", skus, err, time.Since(began))
			}
			err := b.at(t.Context(), nil, func(p *places) error { return p.need(skus...) })
			if !errors.Is(err, stock.ErrRowLocked) {
				t.Errorf("%q: %v", skus, err)
			}
		}
		r.change(func() { r.locked["bad"] = false })
		time.Sleep(5 * time.Second)
		if err := do("bad", "good"); err != nil {
			t.Error(err)
		}
		if len(b.suspects)+len(b.bySKU) != 0 {
			t.Errorf("%v, %v", b.suspects, b.bySKU)
		}
	})
}

// Many rows are locked, and one was in such demand that a transaction waited in vain. Nobody has a connection for a locked row,
// and all are refused long before their deadline. The last row is sold as soon as its version says that it is written to.
func TestSuspectsAdmitNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 40
		r := newTable()
		b := newBulkheads(t.Context(), 2, r)
		defer b.close()
		skus := []string{"hot"}
		r.wanted["hot"] = true
		for i := range many {
			skus = append(skus, fmt.Sprint("sku-", i))
			r.locked[skus[i+1]] = true
		}
		slices.Reverse(skus)
		b.suspect(skus)
		over := make(chan error, many)
		for _, sku := range skus[:many] {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				over <- b.at(ctx, []string{sku}, func(*places) error {
					t.Errorf("a transaction wrote to %s", sku)
					return nil
				})
			}()
		}
		time.AfterFunc(2*time.Second, func() { r.change(func() { r.version["hot"]++ }) })
		began := time.Now()
		if err := b.at(t.Context(), []string{"hot"}, nothing); err != nil || time.Since(began) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for range many {
			if err := <-over; !errors.Is(err, stock.ErrRowLocked) {
				t.Error(err)
			}
		}
	})
}

// Many rows are locked. One that has come free is sold again within a second, as is one that is in such demand that no look
// finds it free. The others refuse as before.
func TestFreedRowIsSoldAmongManyLocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 40
		r := newTable()
		b := newBulkheads(t.Context(), 2, r)
		defer b.close()
		var skus []string
		for i := range many {
			skus = append(skus, fmt.Sprint("sku-", i))
			r.locked[skus[i]] = true
		}
		b.suspect(skus)
		time.Sleep(5 * time.Second) // most have not been probed
		refused := func() (n int) {
			for _, sku := range skus {
				err := b.at(t.Context(), []string{sku}, nothing)
				if errors.Is(err, stock.ErrRowLocked) {
					n++
				} else if err != nil {
					t.Error(err)
				}
			}
			return n
		}
		if n := refused(); n != many {
			t.Fatalf("%d of %d locked rows refuse", n, many)
		}
		for i, free := range []func(sku string){
			func(sku string) { r.locked[sku] = false },
			func(sku string) { r.locked[sku], r.wanted[sku] = false, true },
		} {
			r.change(func() { free(skus[i]) })
			r.change(func() { r.version[skus[i]]++ })
			time.Sleep(time.Second)
			if n := refused(); n != many-1-i {
				t.Errorf("a second after row %d was free %d rows refuse", i, n)
			}
			if err := b.at(t.Context(), skus[i:i+1], nothing); err != nil {
				t.Error(err)
			}
		}
	})
}

// A look tells which rows are free, segments included, waits for none, and sees what was written to any of them.
func TestLookShowsFreeRowsAndVersions(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: testbedtest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	skus := []string{"free", "locked", "part", "parts"}
	for _, sku := range skus {
		l := stock.Level{SKU: sku, Strategy: "conditional", OnHand: 100}
		if sku[0] == 'p' {
			l.Strategy = stock.SegmentedName
		}
		if _, _, err := s.CreateSKU(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	look := func() map[string]sight {
		t.Helper()
		seen, err := s.look(t.Context(), skus)
		if err != nil || len(seen) != len(skus) {
			t.Fatal(seen, err)
		}
		return seen
	}
	for sku, now := range look() {
		if !now.free || now.version == 0 {
			t.Errorf("%s: %+v", sku, now)
		}
	}
	locks := map[string]string{
		"locked": "UPDATE skus SET version = version + 1 WHERE sku = 'locked'",
		"part":   "UPDATE sku_segments SET version = version + 1 WHERE sku = 'part' AND segment = 7",
		"parts":  "UPDATE sku_segments SET version = version + 1 WHERE sku = 'parts'",
	}
	for sku, query := range locks {
		before := look()
		tx := s.db.WithContext(t.Context()).Begin()
		defer tx.Rollback()
		if err := tx.Exec(query).Error; err != nil {
			t.Fatal(err)
		}
		for other, now := range look() {
			if now.free != (other != sku) || now.version != before[other].version {
				t.Errorf("%s is locked, and %s: %+v", sku, other, now)
			}
		}
		if err := tx.Commit().Error; err != nil {
			t.Fatal(err)
		}
		if now := look()[sku]; !now.free || now.version == before[sku].version {
			t.Errorf("%s is free and was written to: %+v, before %+v", sku, now, before[sku])
		}
	}
}
