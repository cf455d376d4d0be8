package blackbox_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// BenchmarkCommit is the write path of orders alone, with their timers, on a MariaDB that flushes at every commit.
// Batches under a fence come from one side, as a cohort commits them. Single orders with the writes of "naive"
// and "conditional" come from 32 sides.
func BenchmarkCommit(b *testing.B) {
	db := testbedtest.StartMariaDB(b, testbed.MariaDBConfig{})
	for _, c := range []struct {
		write       stock.Update
		size, sides int
	}{
		{stock.Fenced, 1, 1},
		{stock.Fenced, 16, 1},
		{stock.Fenced, 64, 1},
		{stock.Fenced, 256, 1},
		{stock.WriteBack, 1, 32},
		{stock.Conditional, 1, 32},
	} {
		name := map[stock.Update]string{stock.Fenced: "fenced", stock.WriteBack: "naive", stock.Conditional: "conditional"}[c.write]
		b.Run(fmt.Sprintf("%s/size=%d/sides=%d", name, c.size, c.sides), func(b *testing.B) {
			s, _ := timed(b, open(b, db.URL(), "one"))
			sku := fmt.Sprint(name, b.N, order.NewID()[:13])
			create(b, s, sku, "conditional", 1_000_000_000)
			var next atomic.Int64
			var sides sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range c.sides {
				sides.Go(func() {
					for int(next.Add(1)) <= b.N {
						batch := make([]*order.Request, c.size)
						for i := range batch {
							batch[i] = request(1, sku)
						}
						var f dlock.Fence
						if c.write == stock.Fenced {
							f = fence(1)
						}
						if err := s.Commit(b.Context(), &order.Batch{Claims: claim(sku, c.write, f), Requests: batch}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			sides.Wait()
			b.ReportMetric(float64(b.N*c.size)/b.Elapsed().Seconds(), "orders/s")
		})
	}
}

// BenchmarkExpire expires orders in batches of 200, with their timers and on
// MariaDB, from as many sides as a queue handles batches at once.
func BenchmarkExpire(b *testing.B) {
	for _, skus := range []int{1, 20} {
		for _, sides := range []int{1, 4} {
			b.Run(fmt.Sprintf("skus=%d/sides=%d", skus, sides), func(b *testing.B) {
				s, _ := timed(b, open(b, testbedtest.Database(b), "one"))
				expireBatches(b, s, skus, sides)
			})
		}
	}
}

func expireBatches(b *testing.B, s *sqlstore.Store, skus, sides int) {
	const size, batches = 200, 50
	for sku := range skus {
		create(b, s, fmt.Sprint("sku-", sku), "conditional", 1_000_000_000)
	}
	for b.Loop() {
		b.StopTimer()
		work := make(chan []string, batches)
		for range batches {
			var ids []string
			for sku := range skus {
				ids = append(ids, placeMany(b, s, fmt.Sprint("sku-", sku), size/skus)...)
			}
			work <- ids
		}
		close(work)
		b.StartTimer()
		var group sync.WaitGroup
		for range sides {
			group.Go(func() {
				for ids := range work {
					if _, err := s.Expire(b.Context(), ids); err != nil {
						b.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
	b.ReportMetric(float64(b.N*batches*size)/b.Elapsed().Seconds(), "orders/s")
}

// placeMany stores orders of one unit that have expired, and returns their ids.
func placeMany(b *testing.B, s *sqlstore.Store, sku string, n int) []string {
	b.Helper()
	requests, ids := make([]*order.Request, n), make([]string, n)
	for i := range requests {
		requests[i] = request(1, sku)
		requests[i].TTL, ids[i] = 0, requests[i].Order.ID
	}
	if err := s.Commit(b.Context(), &order.Batch{Claims: claim(sku, stock.RowLock, dlock.Fence{}), Requests: requests}); err != nil {
		b.Fatal(err)
	}
	return ids
}
