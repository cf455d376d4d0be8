package zklock_test

import (
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/zookeeper"
)

func TestRW(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	admin := rwLocker(t, session(t, addr))
	dlocktest.RunRW(t, dlocktest.RWHarness{
		New: func(t *testing.T) dlock.RWLocker { return rwLocker(t, session(t, addr)) },
		TTL: ttl,
		Expire: func(t *testing.T, key string) {
			if err := admin.ForceRelease(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		},
		Waiting: func(t *testing.T, key string) int {
			state, err := admin.Inspect(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return state.Waiters
		},
		SharedFence: true,
		Reentrant:   true,
		Patience:    ttl,
		Behind: func(t *testing.T) (dlock.RWLocker, dlocktest.Link) {
			proxy := testbedtest.StartProxy(t, addr)
			link := link(t, proxy)
			link.LoseReply = func() { proxy.DropReply("/queue/") }
			return rwLocker(t, session(t, proxy.Addr())), link
		},
	})
}

func rwLocker(t testing.TB, s *zookeeper.Session) *zklock.RW {
	t.Helper()
	l, err := zklock.NewRW(s, zklock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
