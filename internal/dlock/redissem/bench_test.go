package redissem_test

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// BenchmarkSemaphore takes one permit and releases it. Each goroutine has a key of its own, or 32 goroutines of one
// client share a key with 4 permits.
func BenchmarkSemaphore(b *testing.B) {
	rdb, err := redisclient.New(testbedtest.Redis(b))
	if err != nil {
		b.Fatal(err)
	}
	defer rdb.Close()
	s, err := redissem.New(rdb, redissem.Config{Permits: 4})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(b.Context())
	for _, c := range []struct {
		name       string
		goroutines int
		shared     bool
	}{{"alone", 1, false}, {"apart", 32, false}, {"contended", 32, true}} {
		b.Run(c.name, func(b *testing.B) {
			var id atomic.Int64
			run := rand.Text()
			work := func(next func() bool) {
				key := run
				if !c.shared {
					key += strconv.FormatInt(id.Add(1), 10)
				}
				for next() {
					lease, err := s.Acquire(b.Context(), key, 1)
					if err != nil {
						b.Error(err)
						return
					}
					lease.Release(b.Context())
				}
			}
			start := time.Now()
			if c.goroutines == 1 {
				work(b.Loop)
			} else {
				b.SetParallelism(c.goroutines / 2)
				b.RunParallel(func(pb *testing.PB) { work(pb.Next) })
			}
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "pairs/s")
		})
	}
}
