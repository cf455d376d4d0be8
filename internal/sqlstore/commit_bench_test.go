package sqlstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// BenchmarkCommit is the write path of orders alone, with their timers, on a MariaDB that flushes
// at every commit: batches under a fence from one side, as a cohort commits them, and single
// orders of the writes of "naive", "conditional" and "segmented" from 32 sides.
func BenchmarkCommit(b *testing.B) {
	db := testbedtest.StartMariaDB(b, testbed.MariaDBConfig{})
	for _, c := range []struct {
		write       stock.Write
		size, sides int
	}{
		{stock.Fenced, 1, 1},
		{stock.Fenced, 16, 1},
		{stock.Fenced, 64, 1},
		{stock.Fenced, 256, 1},
		{stock.WriteBack, 1, 32},
		{stock.Conditional, 1, 32},
		{stock.Segmented, 1, 32},
	} {
		name := map[stock.Write]string{stock.Fenced: "fenced", stock.WriteBack: "naive", stock.Conditional: "conditional", stock.Segmented: "segmented"}[c.write]
		b.Run(fmt.Sprintf("%s/size=%d/sides=%d", name, c.size, c.sides), func(b *testing.B) {
			s, _ := timed(b, open(b, db.URL(), "one"))
			sku := fmt.Sprint(name, b.N, order.NewID()[:13])
			create(b, s, sku, soldBy(c.write), 1_000_000_000)
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
						if err := s.Commit(b.Context(), claim(sku, c.write, f), batch); err != nil {
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
