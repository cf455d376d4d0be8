package e2e_test

import (
	"context"
	"database/sql"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// placesAll waits until ten more orders of each SKU are placed, and ten more at each instance.
func (s *midSale) placesAll(t *testing.T) {
	t.Helper()
	count := func(what string) int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.placed[what])
	}
	all := slices.Clone(s.skus)
	for _, in := range s.fleet {
		all = append(all, in.url)
	}
	before := make(map[string]int)
	for _, what := range all {
		before[what] = count(what)
	}
	for _, what := range all {
		testbedtest.Eventually(t, "ten orders: "+what, func() bool { return count(what) >= before[what]+10 })
	}
}

// refusals returns how many responses of each instance had a type of problem so far.
func (s *midSale) refusals(problem string) (each []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.fleet {
		each = append(each, s.refused[problem+" at "+in.url])
	}
	return each
}

// resumed returns how long after a moment the last of the SKUs was sold.
func (s *midSale) resumed(after time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range s.skus {
		i, _ := slices.BinarySearchFunc(s.placed[sku], after, time.Time.Compare)
		longest = max(longest, s.placed[sku][i].Sub(after))
	}
	return longest
}

// gaps returns the longest time without an order of each of the SKUs since a moment.
func (s *midSale) gaps(since time.Time) (longest []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range s.skus {
		gap, last := time.Duration(0), since
		for _, at := range s.placed[sku] {
			if at.After(last) {
				gap, last = max(gap, at.Sub(last)), at
			}
		}
		longest = append(longest, gap)
	}
	return longest
}

// opening returns how long the writer takes to accept as many connections as the instances open, while they sell, and 10 s at most.
func (s *midSale) opening(t *testing.T, url string) time.Duration {
	t.Helper()
	var pools []*sql.DB
	for range s.fleet {
		d, err := sqldb.Open(t.Context(), url, sqldb.AccessCreate)
		must(t, err)
		db := sql.OpenDB(d.Usual)
		defer db.Close()
		for range d.Connections {
			pools = append(pools, db)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began, opened := time.Now(), make(chan *sql.Conn, len(pools))
	var all sync.WaitGroup
	for _, db := range pools {
		all.Go(func() {
			for {
				if conn, err := db.Conn(ctx); err == nil {
					opened <- conn
					return
				}
				if !backoff.Sleep(ctx, 10*time.Millisecond) {
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	close(opened)
	for conn := range opened {
		must(t, conn.Close())
	}
	return took
}
