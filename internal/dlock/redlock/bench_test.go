package redlock_test

import (
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock/redlock"
)

// BenchmarkFrozen takes and releases a free key, one after the other, while some of
// five servers are paused.
func BenchmarkFrozen(b *testing.B) {
	s := ready(b, 5)
	for frozen := range 3 {
		b.Run(strconv.Itoa(frozen), func(b *testing.B) {
			l := locker(b, s.urls(), redlock.Config{})
			for _, server := range s[:frozen] {
				if err := server.Pause(); err != nil {
					b.Fatal(err)
				}
			}
			var acquire, release []time.Duration
			key := rand.Text()
			for b.Loop() {
				start := time.Now()
				lease, err := l.Acquire(b.Context(), key)
				if err != nil {
					b.Fatal(err)
				}
				taken := time.Now()
				if err := lease.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
				acquire, release = append(acquire, taken.Sub(start)), append(release, time.Since(taken))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
			percentiles(b, "acquire", acquire)
			percentiles(b, "release", release)
			for _, server := range s {
				if err := server.Resume(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func percentiles(b *testing.B, what string, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), what+"-p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), what+"-p99-us")
}

// BenchmarkUncontended takes and releases keys that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	s := ready(b, 5)
	for _, goroutines := range []int{1, 32} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			pairs(b, goroutines, func(int) (*redlock.Locker, string) { return locker(b, s.urls(), redlock.Config{}), rand.Text() })
		})
	}
}

// BenchmarkContended has clients take turns at one key.
func BenchmarkContended(b *testing.B) {
	s := ready(b, 5)
	for _, clients := range []int{2, 8} {
		b.Run(strconv.Itoa(clients), func(b *testing.B) {
			key := rand.Text()
			pairs(b, clients, func(int) (*redlock.Locker, string) { return locker(b, s.urls(), redlock.Config{}), key })
		})
	}
}

// pairs takes and releases, with so many goroutines.
func pairs(b *testing.B, goroutines int, open func(i int) (*redlock.Locker, string)) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range goroutines {
		l, key := open(i)
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				lease, err := l.Acquire(b.Context(), key)
				if err != nil {
					b.Error(err)
					return
				}
				lease.Release(b.Context())
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}
