package redislock_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// TestHistoryOfServerThatLosesItsData kills the server again and again; it comes
// back empty.
func TestHistoryOfServerThatLosesItsData(t *testing.T) {
	t.Parallel()
	histories(t, 3, true, func(t *testing.T, tr *trial) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		clients := tr.clients(t, 7, server.URL())
		tr.least = 10
		for _, c := range clients { // Only a client that has known a semaphore sees that it is another now.
			for _, key := range tr.load.Keys {
				cycle(t, c, key)
			}
		}
		tr.during(t, clients[:5], func() {
			ctx, stop := context.WithCancel(t.Context())
			var holders sync.WaitGroup
			defer holders.Wait()
			defer stop()
			holders.Go(func() { // Others hold for long, and so believe while the server is new.
				long := tr.load
				long.Hold = ttl
				long.Run(ctx, clients[5:]...)
			})
			for range testbedtest.Size(4, 30) {
				sleep(t, tr.between(ttl/10, ttl/3))
				tr.lose(func() {
					if err := server.Kill(); err != nil {
						t.Error(err)
					}
					if err := server.Restart(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			sleep(t, ttl/3)
		})
	})
}

// lose runs f, in which the store forgets everything. A lock is lost then. Permits
// are not: a semaphore that finds its data gone grants nothing until all that was
// granted before has lapsed, so that refusals need no other reason.
func (tr *trial) lose(f func()) {
	tr.dataLost = true
	if tr.permits == 1 {
		tr.LoseAll(f)
		return
	}
	tr.Haunt(tr.permits, tr.load.Keys...)
	f()
}

// TestHistoryOfFailoverToALaggingReplica lets the replica fall behind before it
// takes over: it does not know the last grants, nor the last releases.
func TestHistoryOfFailoverToALaggingReplica(t *testing.T) {
	t.Parallel()
	histories(t, 3, true, func(t *testing.T, tr *trial) {
		master, replica := replicated(t)
		var addr atomic.Value
		addr.Store(master.Addr())
		clients := make([]*dlocktest.HistoryClient, 5)
		for i := range clients {
			clients[i] = tr.open(t, moving(t, &addr))
		}
		tr.during(t, clients, func() {
			sleep(t, tr.between(ttl/10, ttl/4))
			tr.Haunt(tr.permits, tr.load.Keys...)
			tr.dataLost = true
			tr.LoseAll(func() {
				command(t, replica, "REPLICAOF", "127.0.0.1", "1")
				sleep(t, tr.between(ttl/20, ttl/5))
				if err := master.Kill(); err != nil {
					t.Error(err)
				}
				command(t, replica, "REPLICAOF", "NO", "ONE")
			})
			addr.Store(replica.Addr())
			sleep(t, 3*ttl/2) // what was released while the replica lagged, it frees only now
		})
	})
}

// replicated starts a master and a replica that is in step.
func replicated(t *testing.T) (master, replica *testbed.Redis) {
	t.Helper()
	master = testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--repl-diskless-sync-delay", "0"}})
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica = testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--replicaof", host + " " + port}})
	m, r := client(t, master.URL()), client(t, replica.URL())
	waitFor(t, "replication", func() bool {
		return m.Set(t.Context(), "probe", "1", 0).Err() == nil && get(t, r, "probe") == "1"
	})
	return master, replica
}

func command(t *testing.T, server *testbed.Redis, args ...any) {
	t.Helper()
	if err := client(t, server.URL()).Do(t.Context(), args...).Err(); err != nil {
		t.Error(err)
	}
}

// moving returns a client that connects to where addr says at the time.
func moving(t *testing.T, addr *atomic.Value) redis.UniversalClient {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: "moving", MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
		},
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}
