package permits_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// commands counts what a client sends, pushes and renewals too.
type commands struct{ sent atomic.Int64 }

func (c *commands) roundTrip(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
	c.sent.Add(int64(len(cmds)))
	return send(ctx, cmds)
}

// A steady load costs what an idle instance costs, and not a command per operation.
func TestCommandsPerOperation(t *testing.T) {
	t.Parallel()
	const goroutines = 16
	m := joinSteady(t, testbedtest.Redis(t), rand.Text(), 64)
	var c commands
	m.rdb.AddHook(testbedtest.RoundTrips(c.roundTrip))
	want := int64(testbedtest.Size(20_000, 1_000_000)) / goroutines
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range want {
				release, err := m.Take(t.Context())
				if err != nil {
					t.Errorf("16 at once, of 64: %v", err)
					return
				}
				release()
			}
		})
	}
	wg.Wait()
	perThousand := float64(c.sent.Load()) * 1000 / float64(want*goroutines)
	t.Logf("%d commands for %d operations, %.2f per 1,000", c.sent.Load(), want*goroutines, perThousand)
	if perThousand > 50 {
		t.Errorf("%.1f commands per 1,000 operations", perThousand)
	}
}

// Refusals cost the store next to nothing.
func TestCommandsPerRefusal(t *testing.T) {
	t.Parallel()
	url, key := testbedtest.Redis(t), rand.Text()
	first, m := joinSteady(t, url, key, 8), joinSteady(t, url, key, 8)
	together(t, first, m)
	for had := 0; had < 8; {
		for _, who := range []*member{first, m} {
			if _, err := who.Take(t.Context()); err == nil {
				had++
			}
		}
	}
	var c commands
	m.rdb.AddHook(testbedtest.RoundTrips(c.roundTrip))
	start := time.Now()
	const refusals = 20_000
	for range refusals {
		if _, err := m.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
			t.Fatalf("Take = %v, want ErrConcurrencyLimit", err)
		}
	}
	d := time.Since(start)
	perThousand := float64(c.sent.Load()) * 1000 / refusals
	t.Logf("%d commands for %d refusals in %v, %.2f per 1,000", c.sent.Load(), refusals, d, perThousand)
	if perThousand > 50 {
		t.Errorf("%.1f commands per 1,000 refusals", perThousand)
	}
}

// BenchmarkTake compares, in one run and with the same goroutines, a permit of the
// Limiter with a lease of the semaphore for each operation. The ratio is local
// permits per lease.
func BenchmarkTake(b *testing.B) {
	rdb, err := redisclient.New(testbedtest.Redis(b))
	if err != nil {
		b.Fatal(err)
	}
	defer rdb.Close()
	sem, err := redissem.New(rdb, redissem.Config{Permits: 64, TTL: ttl})
	if err != nil {
		b.Fatal(err)
	}
	defer sem.Close(b.Context())
	key := rand.Text()
	l, err := permits.New(shared(b, rdb, key), permits.Config{Permits: 64, TTL: ttl, Timeout: calm})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	for l.Stats().Leased == 0 {
		<-time.After(time.Millisecond)
	}
	var c commands
	rdb.AddHook(testbedtest.RoundTrips(c.roundTrip))
	var local, leased float64
	measure := func(b *testing.B, f func() error) float64 {
		b.Helper()
		c.sent.Store(0)
		b.SetParallelism(16)
		start := time.Now()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := f(); err != nil {
					b.Error(err)
					return
				}
			}
		})
		rate := float64(b.N) / time.Since(start).Seconds()
		b.ReportMetric(rate, "permits/s")
		b.ReportMetric(float64(c.sent.Load())*1000/float64(b.N), "commands/1000")
		return rate
	}
	b.Run("leases", func(b *testing.B) {
		b.ReportAllocs()
		leased = measure(b, func() error {
			lease, err := sem.Acquire(b.Context(), key+"-apart", 1)
			if err != nil {
				return err
			}
			return lease.Release(b.Context())
		})
	})
	b.Run("shared", func(b *testing.B) {
		b.ReportAllocs()
		local = measure(b, func() error {
			release, err := l.Take(b.Context())
			if err != nil {
				return err
			}
			release()
			return nil
		})
		b.ReportMetric(local/leased, "ratio")
	})
}
