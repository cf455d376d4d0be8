package redislock_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestHistoryOfServerThatLosesItsData kills the server again and again; it restarts empty. Some clients hold for long,
// and so consider their leases valid while the server is new.
func TestHistoryOfServerThatLosesItsData(t *testing.T) {
	t.Parallel()
	histories(t, contenders(), 3, true, func(t testing.TB, tr *trial) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		tr.losses(t, tr.clients(t, 7, server.URL()), func(join func(l dlocktest.Load, clients ...*dlocktest.HistoryClient)) {
			tr.AddGhosts(tr.permits, tr.load.Keys...) // a semaphore grants nothing while somebody knows of the loss
			tr.LoseAll(func() { wipe(t, server) })
			if tr.permits == 1 { // nobody needs to know of anything
				return
			}
			fresh := tr.load // new to the keys; it leaves soon, for a crowd makes a history that nobody can check
			fresh.Rounds = 20
			join(fresh, tr.clients(t, 1, server.URL())...)
		})
	})
}

// TestHistoryOfALossThatAllHoldersKnow is the same without clients that are new to a key. Each client of a semaphore
// detects that the server is another one. So a grant from before the loss never overlaps a grant from after it. A
// lease counts for as long as its holder considers it valid.
func TestHistoryOfALossThatAllHoldersKnow(t *testing.T) {
	t.Parallel()
	semaphores := slices.DeleteFunc(contenders(), func(c contender) bool { return c.permits == 1 })
	histories(t, semaphores, 3, true, func(t testing.TB, tr *trial) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		clients := tr.clients(t, 7, server.URL())
		for _, c := range clients {
			for _, key := range tr.load.Keys {
				cycle(t, c, key)
			}
		}
		tr.TTL = 1 // a release may find nothing, however fast it is
		tr.losses(t, clients, func(func(dlocktest.Load, ...*dlocktest.HistoryClient)) {
			tr.AddGhosts(tr.permits, tr.load.Keys...)
			wipe(t, server)
		})
	})
}

// losses runs the load over one loss of data after another, which others may join.
func (tr *trial) losses(t testing.TB, clients []*dlocktest.HistoryClient, lose func(join func(dlocktest.Load, ...*dlocktest.HistoryClient))) {
	t.Helper()
	tr.least = 10
	between := ttl / 3
	if tr.permits > 1 { // nothing is granted for a TTL once somebody knows
		between = 2 * ttl
	}
	tr.during(t, clients[:5], func() {
		ctx, stop := context.WithCancel(t.Context())
		var holders sync.WaitGroup
		defer holders.Wait()
		defer stop()
		join := func(l dlocktest.Load, clients ...*dlocktest.HistoryClient) {
			holders.Go(func() { l.Run(ctx, clients...) })
		}
		long := tr.load
		long.Hold = ttl
		join(long, clients[5:]...)
		for range testbedtest.Size(4, 20) {
			sleep(t, tr.between(ttl/10, between))
			lose(join)
		}
		sleep(t, between)
	})
}

// wipe kills the server, and starts it empty.
func wipe(t testing.TB, server *testbed.Redis) {
	t.Helper()
	if err := server.Kill(); err != nil {
		t.Error(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHistoryOfFailoverToALaggingReplica lets the replica fall behind before it takes over. It does not know the last
// grants, nor the last releases.
func TestHistoryOfFailoverToALaggingReplica(t *testing.T) {
	t.Parallel()
	histories(t, contenders(), 3, true, func(t testing.TB, tr *trial) {
		master, replica := replicated(t)
		var addr atomic.Value
		addr.Store(master.Addr())
		clients := make([]*dlocktest.HistoryClient, 5)
		for i := range clients {
			clients[i] = tr.client(t, moving(t, &addr))
		}
		tr.during(t, clients, func() {
			sleep(t, tr.between(ttl/10, ttl/4))
			tr.AddGhosts(tr.permits, tr.load.Keys...)
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
func replicated(t testing.TB) (master, replica *testbed.Redis) {
	t.Helper()
	master = testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--repl-diskless-sync-delay", "0"}})
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica = testbedtest.StartRedis(t, testbed.RedisConfig{Args: []string{"--replicaof", host + " " + port}})
	m, r := redistest.Client(t, master.URL()), redistest.Client(t, replica.URL())
	testbedtest.Eventually(t, "replication", func() bool {
		return m.Set(t.Context(), "probe", "1", 0).Err() == nil && get(t, r, "probe") == "1"
	})
	return master, replica
}

func command(t testing.TB, server *testbed.Redis, args ...any) {
	t.Helper()
	if err := redistest.Client(t, server.URL()).Do(t.Context(), args...).Err(); err != nil {
		t.Error(err)
	}
}

// moving returns a client that connects to where addr says at the time.
func moving(t testing.TB, addr *atomic.Value) redis.UniversalClient {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: "moving", MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, MaintNotificationsConfig: redistest.Quiet(),
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
		},
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}
