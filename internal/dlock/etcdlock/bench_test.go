package etcdlock_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// taker takes a key and returns how to release it.
type taker func(ctx context.Context, key string) (release func(context.Context) error, err error)

// subjects are this package and the library of etcd. The Mutex of the library needs a session, which is created once:
// a lease for each holder would cost more.
func subjects(b *testing.B, addr string) map[string]func(b *testing.B) taker {
	b.Helper()
	return map[string]func(b *testing.B) taker{
		"etcdlock": func(b *testing.B) taker {
			l := configured(b, client(b, addr), etcdlock.Config{})
			return func(ctx context.Context, key string) (func(context.Context) error, error) {
				lease, err := l.Acquire(ctx, key)
				if err != nil {
					return nil, err
				}
				return lease.Release, nil
			}
		},
		"concurrency.Mutex": func(b *testing.B) taker {
			session, err := concurrency.NewSession(client(b, addr))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { session.Close() })
			return func(ctx context.Context, key string) (func(context.Context) error, error) {
				m := concurrency.NewMutex(session, key)
				return m.Unlock, m.Lock(ctx)
			}
		},
	}
}

// each runs f for every subject.
func each(b *testing.B, f func(b *testing.B, open func(b *testing.B) taker)) {
	b.Helper()
	server := testbedtest.StartEtcd(b, testbed.EtcdConfig{})
	for name, open := range subjects(b, server.Addr()) {
		b.Run(name, func(b *testing.B) { f(b, open) })
	}
}

// BenchmarkUncontended takes and releases a key that nobody else wants.
func BenchmarkUncontended(b *testing.B) {
	each(b, func(b *testing.B, open func(b *testing.B) taker) {
		for _, goroutines := range []int{1, 32} {
			b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
				take := open(b)
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var wg sync.WaitGroup
				for range goroutines {
					key := rand.Text()
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							cycle(b, take, key, 0)
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
			})
		}
	})
}

// cycle returns how long it took to take key.
func cycle(b *testing.B, take taker, key string, hold time.Duration) time.Duration {
	b.Helper()
	start := time.Now()
	release, err := take(b.Context(), key)
	if err != nil {
		b.Error(err)
		return 0
	}
	took := time.Since(start)
	if hold > 0 {
		<-time.After(hold)
	}
	if err := release(b.Context()); err != nil {
		b.Error(err)
	}
	return took
}

// BenchmarkContended has 32 clients, each with a connection of its own, take turns at
// one key.
func BenchmarkContended(b *testing.B) {
	each(b, func(b *testing.B, open func(b *testing.B) taker) {
		const clients = 32
		var takers [clients]taker
		for i := range takers {
			takers[i] = open(b)
		}
		key := rand.Text()
		var left atomic.Int64
		left.Store(int64(b.N))
		grants, waits := make([]int, clients), make([][]time.Duration, clients)
		b.ResetTimer()
		var wg sync.WaitGroup
		for i, take := range takers {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					waits[i] = append(waits[i], cycle(b, take, key, 0))
					grants[i]++
				}
			})
		}
		wg.Wait()
		b.StopTimer()
		all := slices.Sorted(slices.Values(slices.Concat(waits...)))
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "locks/s")
		b.ReportMetric(float64(slices.Max(grants))/float64(max(1, slices.Min(grants))), "max/min")
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	})
}

// BenchmarkHandOff has two clients pass a key to and fro. It measures the time from the call that releases until the
// other client has the key.
func BenchmarkHandOff(b *testing.B) {
	each(b, func(b *testing.B, open func(b *testing.B) taker) {
		takers, key := [2]taker{open(b), open(b)}, rand.Text()
		release, err := takers[0](b.Context(), key)
		if err != nil {
			b.Fatal(err)
		}
		type grant struct {
			release func(context.Context) error
			at      time.Time
		}
		var took []time.Duration
		for i := range b.N {
			granted := make(chan grant, 1)
			go func() {
				next, err := takers[(i+1)%2](b.Context(), key)
				if err != nil {
					b.Error(err)
				}
				granted <- grant{next, time.Now()}
			}()
			<-time.After(20 * time.Millisecond) // it waits by then
			start := time.Now()
			if err := release(b.Context()); err != nil {
				b.Error(err)
			}
			next := <-granted
			release = next.release
			took = append(took, next.at.Sub(start))
		}
		b.StopTimer()
		release(b.Context())
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	})
}
