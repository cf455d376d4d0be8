package redislock_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// proxied opens n clients behind a proxy each.
func (tr *trial) proxied(t testing.TB, n int, url string) ([]*dlocktest.HistoryClient, []*testbed.Proxy) {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	clients, proxies := make([]*dlocktest.HistoryClient, n), make([]*testbed.Proxy, n)
	for i := range n {
		proxies[i] = testbedtest.StartProxy(t, opts.Addr)
		clients[i] = tr.client(t, redistest.Client(t, "redis://"+proxies[i].Addr()))
	}
	return clients, proxies
}

// TestHistoryOfLostReplies loses replies of every kind after the server has executed.
func TestHistoryOfLostReplies(t *testing.T) {
	t.Parallel()
	histories(t, everything(), 3, true, func(t testing.TB, tr *trial) {
		clients, proxies := tr.proxied(t, 5, testbedtest.Redis(t))
		tr.during(t, clients, func() {
			for range testbedtest.Size(60, 600) {
				proxies[tr.random.IntN(len(proxies))].DropReply("evalsha")
				sleep(t, tr.between(10*time.Millisecond, 60*time.Millisecond))
			}
		})
		lost := 0
		for _, p := range proxies {
			lost += p.Dropped()
		}
		if lost < 10 {
			t.Errorf("only %d replies were lost: that proves nothing", lost)
		}
	})
}

// TestHistoryOfBlackHoles cuts clients off at random phases of their renewals and
// waits, for less and for more than a TTL. Each holder must know before the next one
// is in, whatever arrives late.
func TestHistoryOfBlackHoles(t *testing.T) {
	t.Parallel()
	histories(t, everything(), 4, true, func(t testing.TB, tr *trial) {
		tr.load.Hold, tr.least = ttl, 10
		victims, proxies := tr.proxied(t, 6, testbedtest.Redis(t))
		rest := tr.clients(t, 3, testbedtest.Redis(t))
		tr.during(t, append(victims, rest...), func() {
			var wg sync.WaitGroup
			for i, p := range proxies {
				random := rand.New(rand.NewPCG(tr.load.Seed, uint64(i)))
				wg.Go(func() {
					for range testbedtest.Size(3, 30) {
						sleep(t, time.Duration(random.Int64N(int64(ttl/2))))
						p.BlackHole()
						sleep(t, ttl/4+time.Duration(random.Int64N(int64(5*ttl/4))))
						if err := p.Pass(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	})
}

// TestHistoryOfKilledConnections has the server close all connections, of calls and
// of notifications, whatever is on its way on them.
func TestHistoryOfKilledConnections(t *testing.T) {
	t.Parallel()
	histories(t, everything(), 3, true, func(t testing.TB, tr *trial) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin := redistest.Client(t, server.URL())
		tr.during(t, tr.clients(t, 6, server.URL()), func() {
			for i := range testbedtest.Size(150, 1500) {
				kind := []string{"normal", "pubsub"}[i%2]
				if err := admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Err(); err != nil {
					t.Error(err)
				}
				sleep(t, tr.between(2*time.Millisecond, 20*time.Millisecond))
			}
		})
	})
}
