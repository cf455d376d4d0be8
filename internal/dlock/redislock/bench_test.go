package redislock_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// opened returns a Locker with a client of its own, as another process has it.
func opened(b *testing.B, url string) *redislock.Locker {
	b.Helper()
	rdb, err := redisx.New(url)
	if err != nil {
		b.Fatal(err)
	}
	l, err := redislock.New(rdb, redislock.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
		rdb.Close()
	})
	return l
}

// BenchmarkUncontended takes and releases a key that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	server := testbedtest.StartRedis(b, testbed.RedisConfig{})
	for _, goroutines := range []int{1, 32} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			l := opened(b, server.URL())
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range goroutines {
				key := rand.Text()
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
		})
	}
}

// BenchmarkContended has 8 clients with 4 goroutines each take turns at one key.
func BenchmarkContended(b *testing.B) {
	const clients, goroutines = 8, 4
	server := testbedtest.StartRedis(b, testbed.RedisConfig{})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr(), MaintNotificationsConfig: redistest.Quiet()})
	b.Cleanup(func() { admin.Close() })
	var lockers []*redislock.Locker
	for range clients {
		lockers = append(lockers, opened(b, server.URL()))
	}
	key := rand.Text()
	var left atomic.Int64
	left.Store(int64(b.N))
	grants, waits := make([]int, clients*goroutines), make([][]time.Duration, clients*goroutines)
	before := commands(b, admin)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range grants {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				start := time.Now()
				lease, err := lockers[i%clients].Acquire(b.Context(), key)
				if err != nil {
					b.Error(err)
					return
				}
				waits[i] = append(waits[i], time.Since(start))
				grants[i]++
				lease.Release(b.Context())
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	n := float64(b.N)
	all := slices.Sorted(slices.Values(slices.Concat(waits...)))
	b.ReportMetric(n/b.Elapsed().Seconds(), "locks/s")
	b.ReportMetric(float64(slices.Max(grants))/float64(max(1, slices.Min(grants))), "max/min")
	b.ReportMetric(float64(commands(b, admin)-before)/n, "commands/lock")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(all[len(all)-1].Microseconds()), "max-us")
}

// commands counts the scripts that clients have sent.
func commands(b *testing.B, admin *redis.Client) (n int64) {
	b.Helper()
	stats := admin.Info(b.Context(), "commandstats").Val()
	for _, name := range []string{"evalsha", "eval"} {
		_, rest, ok := strings.Cut(stats, "cmdstat_"+name+":calls=")
		if !ok {
			continue
		}
		var calls int64
		if _, err := fmt.Sscanf(rest, "%d", &calls); err != nil {
			b.Fatal(err)
		}
		n += calls
	}
	return n
}
