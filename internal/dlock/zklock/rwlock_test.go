package zklock_test

import (
	"crypto/rand"
	"testing"
	"time"

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
		New: func(t testing.TB) dlock.RWLocker { return rwLocker(t, session(t, addr)) },
		TTL: ttl,
		Expire: func(t testing.TB, key string) {
			if err := admin.ForceRelease(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		},
		Waiting: func(t testing.TB, key string) int {
			state, err := admin.Inspect(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return state.Waiters
		},
		SharedFence: true,
		Reentrant:   true,
		Patience:    ttl,
		Behind: func(t testing.TB) (dlock.RWLocker, dlocktest.Link) {
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

// TestWriterWaitsForAllReaders has the last of two readers release first, in the
// writer's process and in another one.
func TestWriterWaitsForAllReaders(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	first, writer := rwLocker(t, session(t, addr)), rwLocker(t, session(t, addr))
	for name, second := range map[string]*zklock.RW{"own": writer, "other": first} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				key := rand.Text()
				take := func(l *zklock.RW) *dlock.Lease {
					lease, err := patiently(t, l.AcquireRead, key)
					if err != nil {
						t.Fatal(err)
					}
					return lease
				}
				one, two := take(first), take(second)
				granted := make(chan *dlock.Lease, 1)
				go func() {
					lease, err := patiently(t, writer.Acquire, key)
					if err != nil {
						t.Error(err)
					}
					granted <- lease
				}()
				waiters(t, first, key, 1)
				give := func(lease *dlock.Lease) {
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				give(two)
				select {
				case <-granted:
					t.Fatal("a writer is in beside a reader")
				case <-time.After(ttl / 5): // long after the message
				}
				give(one)
				give(<-granted)
			})
		})
	}
}
