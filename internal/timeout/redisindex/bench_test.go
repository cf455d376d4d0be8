package redisindex_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
)

// BenchmarkSchedule has 64 goroutines schedule one timer after the other, each waiting for its own acknowledgement, in
// an index with pending timers.
func BenchmarkSchedule(b *testing.B) {
	const callers = 64
	for _, pending := range []int{0, testbedtest.Size(100_000, 1_000_000)} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			server := testbedtest.StartRedis(b, testbed.RedisConfig{})
			rdb := client(b, server.URL())
			x := index(b, rdb, redisindex.Config{})
			fill(b, x, pending, time.Now().Add(time.Hour))
			due := time.Now().Add(15 * time.Minute)
			var next atomic.Int64
			busy := cpu(b, rdb)
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						entries := []timeout.Entry{{ID: "8" + identity(int(i)), At: due.Add(time.Duration(i%1000) * time.Millisecond)}}
						if err := x.Schedule(b.Context(), "order", partition, entries); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "timers/s")
			b.ReportMetric((cpu(b, rdb)-busy)*1e6/float64(b.N), "redis-us/timer")
		})
	}
}

// BenchmarkDrain claims timers that are all due, with one
// goroutine per shard.
func BenchmarkDrain(b *testing.B) {
	for _, batch := range []int{128, 512} {
		b.Run(strconv.Itoa(batch), func(b *testing.B) {
			server := testbedtest.StartRedis(b, testbed.RedisConfig{})
			rdb := client(b, server.URL())
			x := index(b, rdb, redisindex.Config{})
			fill(b, x, b.N, time.Now().Add(-time.Hour))
			busy := cpu(b, rdb)
			b.ResetTimer()
			var done atomic.Int64
			var wg sync.WaitGroup
			for _, s := range x.Shards("order", partition) {
				wg.Go(func() {
					for {
						c, err := x.Claim(b.Context(), s, batch)
						if err != nil || len(c.Timers) == 0 {
							return
						}
						done.Add(int64(len(c.Timers)))
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			if done.Load() != int64(b.N) {
				b.Errorf("%d of %d timers are drained", done.Load(), b.N)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "timers/s")
			b.ReportMetric((cpu(b, rdb)-busy)*1e6/float64(b.N), "redis-us/timer")
		})
	}
}

// BenchmarkMemory measures what a pending timer costs the server, with the ids of
// orders: 36 characters.
func BenchmarkMemory(b *testing.B) {
	n := testbedtest.Size(100_000, 1_000_000)
	for b.Loop() {
		server := testbedtest.StartRedis(b, testbed.RedisConfig{})
		rdb := client(b, server.URL())
		x := index(b, rdb, redisindex.Config{})
		fill(b, x, 1, time.Now().Add(time.Hour))
		before, start := used(b, rdb), time.Now()
		fill(b, x, n, time.Now().Add(time.Hour))
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "rebuilt/s")
		b.ReportMetric(float64(used(b, rdb)-before)/float64(n), "B/timer")
	}
}

// identity returns an id as long as a UUID.
func identity(i int) string {
	return fmt.Sprintf("%08x-0000-7000-8000-%012d", i*2654435761&0xffffffff, i)[:36]
}

// fill schedules timers in pages, as a rebuild does.
func fill(b *testing.B, x *redisindex.Index, n int, at time.Time) {
	b.Helper()
	const page = 5000
	for i := 0; i < n; i += page {
		var entries []timeout.Entry
		for j := i; j < min(i+page, n); j++ {
			entries = append(entries, timeout.Entry{ID: identity(j), At: at.Add(time.Duration(j) * time.Millisecond / 100)})
		}
		if err := x.Schedule(b.Context(), "order", partition, entries); err != nil {
			b.Fatal(err)
		}
	}
}

// cpu is the time that the server has worked for, in seconds. On a busy machine it says
// more than the time that has passed.
func cpu(b *testing.B, rdb *redis.Client) (sum float64) {
	b.Helper()
	info := rdb.Info(b.Context(), "cpu").Val()
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, rest, _ := strings.Cut(info, name)
		text, _, _ := strings.Cut(rest, "\r")
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += seconds
	}
	return sum
}

// used is the memory of the server, without that of its connections.
func used(b *testing.B, rdb *redis.Client) int {
	b.Helper()
	info := rdb.Info(b.Context(), "memory").Val()
	_, rest, _ := strings.Cut(info, "used_memory_dataset:")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
