package bulkhead

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
)

// table is rows for tests.
type table struct {
	mu      sync.Mutex
	locked  map[string]bool  // guarded by mu: for good
	wanted  map[string]bool  // guarded by mu: never free at the moment of a look
	version map[string]int64 // guarded by mu
	looks   int              // guarded by mu
}

func (r *table) look(_ context.Context, skus []string) (map[string]Sight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks++; r.looks%2 == 0 {
		return nil, mysql.ErrInvalidConn
	}
	seen := make(map[string]Sight)
	for _, sku := range skus {
		seen[sku] = Sight{Version: 1 + r.version[sku], Free: !r.locked[sku] && !r.wanted[sku]}
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

var errLockTimeout = &mysql.MySQLError{Number: 1205}

// Only a lock timeout makes a row suspect. After another failure or a panic, other transactions get the row.
func TestOnlyALockTimeoutIsSuspect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(t.Context(), 2, newTable().look)
		defer b.Close()
		for name, f := range map[string]func(*Places) error{
			"fine": nothing, "another error": func(*Places) error { return mysql.ErrInvalidConn }, "panic": func(*Places) error { panic("a transaction") },
			"a lock timeout": func(*Places) error { return errLockTimeout },
		} {
			func() {
				defer func() { _ = recover() }()
				_ = b.Do(t.Context(), []string{"a"}, f)
			}()
			if want := name == "a lock timeout"; b.Suspects([]string{"b", "a"}) != want {
				t.Errorf("after %s: suspect %t", name, !want)
			}
			time.Sleep(time.Second) // a poll finds it free
			if err := b.Do(t.Context(), []string{"a"}, nothing); err != nil {
				t.Error(err)
			}
		}
	})
}

// A lock timeout of a basket has both of its rows polled. Only the one that is locked is refused, to those in line as well, and
// only until it is free.
func TestPollsFindTheLockedRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newTable()
		r.locked["bad"] = true
		b := New(t.Context(), 2, r.look)
		defer b.Close()
		do := func(skus ...string) error { return b.Do(t.Context(), skus, nothing) }
		for range 2 { // they have the places until the row is known to be locked
			go b.Do(t.Context(), []string{"bad"}, func(*Places) error {
				time.Sleep(10 * time.Second)
				return nil
			})
		}
		synctest.Wait()
		timesOut := func(*Places) error { return errLockTimeout }
		if err := b.Do(t.Context(), []string{"good"}, timesOut); !errors.Is(err, errLockTimeout) {
			t.Error(err)
		}
		b.Suspect([]string{"bad", "good"})
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
			err := b.Do(t.Context(), nil, func(p *Places) error { return p.Need(skus...) })
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
		b := New(t.Context(), 2, r.look)
		defer b.Close()
		skus := []string{"hot"}
		r.wanted["hot"] = true
		for i := range many {
			skus = append(skus, fmt.Sprint("sku-", i))
			r.locked[skus[i+1]] = true
		}
		slices.Reverse(skus)
		b.Suspect(skus)
		over := make(chan error, many)
		for _, sku := range skus[:many] {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				over <- b.Do(ctx, []string{sku}, func(*Places) error {
					t.Errorf("a transaction wrote to %s", sku)
					return nil
				})
			}()
		}
		time.AfterFunc(2*time.Second, func() { r.change(func() { r.version["hot"]++ }) })
		began := time.Now()
		if err := b.Do(t.Context(), []string{"hot"}, nothing); err != nil || time.Since(began) > 3*time.Second {
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
		b := New(t.Context(), 2, r.look)
		defer b.Close()
		var skus []string
		for i := range many {
			skus = append(skus, fmt.Sprint("sku-", i))
			r.locked[skus[i]] = true
		}
		b.Suspect(skus)
		time.Sleep(5 * time.Second)
		refused := func() (n int) {
			for _, sku := range skus {
				err := b.Do(t.Context(), []string{sku}, nothing)
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
			if err := b.Do(t.Context(), skus[i:i+1], nothing); err != nil {
				t.Error(err)
			}
		}
	})
}
