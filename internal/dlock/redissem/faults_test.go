package redissem_test

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// validPermits counts the permits of leases that their holders consider valid: neither lost nor about to be released.
type validPermits struct{ now, most atomic.Int64 }

// add counts lease until it is lost, or until the function is called.
func (b *validPermits) add(lease *dlock.Lease) (remove func()) {
	now := b.now.Add(1)
	for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); {
		most = b.most.Load()
	}
	remove = sync.OnceFunc(func() { b.now.Add(-1) })
	lease.OnEnd(func(error) { remove() })
	return remove
}

// TestServerThatLosesItsPermits kills a server under load; it restarts empty. The former holders consider their leases
// valid for a while: no client is granted a permit alongside them.
func TestServerThatLosesItsPermits(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const permits, clients, goroutines = 4, 3, 4
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), 60*ttl)
		defer cancel()
		var (
			wg     sync.WaitGroup
			b      validPermits
			key    = rand.Text()
			grants atomic.Int64
			stop   = make(chan struct{})
		)
		for range clients {
			s := semaphore(t, redistest.Client(t, server.URL()), permits)
			for range goroutines {
				wg.Go(func() {
					for ctx.Err() == nil {
						select {
						case <-stop:
							return
						default:
						}
						lease, err := s.Acquire(ctx, key, 1)
						if err != nil {
							backoff.Sleep(ctx, ttl/20)
							continue
						}
						grants.Add(1)
						remove := b.add(lease)
						backoff.Sleep(ctx, mathrand.N(ttl))
						remove()
						lease.Release(ctx)
					}
				})
			}
		}
		for range testbedtest.Size(2, 3) {
			backoff.Sleep(ctx, ttl)
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			before := grants.Load()
			testbedtest.Eventually(t, "grants after the loss", func() bool { return grants.Load() > before+permits })
		}
		close(stop)
		wg.Wait()
		t.Logf("%d grants, at most %d considered valid at once", grants.Load(), b.most.Load())
		if most := b.most.Load(); most != permits {
			t.Errorf("%d permits were considered valid at once, there are %d", most, permits)
		}
	})
}
