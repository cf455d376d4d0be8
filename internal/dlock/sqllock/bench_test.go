package sqllock_test

import (
	"crypto/rand"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// engines runs a benchmark on MariaDB as in production, on one that does not flush its
// commits, and on a SQLite file.
func engines(b *testing.B, f func(b *testing.B, s store)) {
	b.Helper()
	for name, open := range map[string]func() store{
		"mariadb": func() store { return mariaDB(testbedtest.StartMariaDB(b, testbed.MariaDBConfig{}).URL()) },
		"mariadb-unflushed": func() store {
			vars := map[string]string{"innodb_flush_log_at_trx_commit": "0"}
			return mariaDB(testbedtest.StartMariaDB(b, testbed.MariaDBConfig{Vars: vars}).URL())
		},
		"sqlite-unflushed": func() store { return sqlite(filepath.Join(b.TempDir(), "locks.db")) },
	} {
		b.Run(name, func(b *testing.B) {
			s := open()
			s.create(b)
			f(b, s)
		})
	}
}

// BenchmarkUncontended takes and releases keys that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	engines(b, func(b *testing.B, s store) {
		for _, goroutines := range []int{1, 32} {
			b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
				l := s.locker(b, sqllock.Config{})
				pairs(b, goroutines, func(int) (*sqllock.Locker, string) { return l, rand.Text() })
			})
		}
	})
}

// BenchmarkContended has processes take turns at one key.
func BenchmarkContended(b *testing.B) {
	engines(b, func(b *testing.B, s store) {
		for _, processes := range []int{2, 8} {
			b.Run(strconv.Itoa(processes), func(b *testing.B) {
				key := rand.Text()
				pairs(b, processes, func(int) (*sqllock.Locker, string) { return s.locker(b, sqllock.Config{}), key })
			})
		}
	})
}

// pairs takes and releases, with so many goroutines.
func pairs(b *testing.B, goroutines int, open func(i int) (*sqllock.Locker, string)) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	waits := make([][]time.Duration, goroutines)
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range goroutines {
		l, key := open(i)
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				start := time.Now()
				lease, err := l.Acquire(b.Context(), key)
				if err != nil {
					b.Error(err)
					return
				}
				waits[i] = append(waits[i], time.Since(start))
				lease.Release(b.Context())
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(waits...)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}
