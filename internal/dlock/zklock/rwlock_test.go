package zklock_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

func TestRW(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	admin := rwLocker(t, session(t, addr), zklock.Config{})
	with := func(cfg zklock.Config) func(t testing.TB) dlock.RWLocker {
		return func(t testing.TB) dlock.RWLocker {
			s := session(t, addr)
			return closingRW{rwLocker(t, s, cfg), s}
		}
	}
	dlocktest.RunRW(t, dlocktest.RWHarness{
		New: with(zklock.Config{}),
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
		FIFO:        true,
		SharedFence: true,
		Reentrant:   true,
		Answers:     answers,
		NoReentry:   with(zklock.Config{NoReentry: true}),
		Capped: func(t testing.TB, limit time.Duration) dlock.RWLocker {
			return with(zklock.Config{MaxHold: limit})(t)
		},
		WaiterTTL: ttl,
		Behind: func(t testing.TB) (dlock.RWLocker, dlocktest.Link) {
			proxy := testbedtest.StartProxy(t, addr)
			link := link(t, proxy)
			link.LoseReply = func() { proxy.DropReply("/queue/") }
			return rwLocker(t, session(t, proxy.Addr()), zklock.Config{}), link
		},
	})
}

// closingRW is an RW that is closed with its session.
type closingRW struct {
	*zklock.RW
	s *zookeeper.Session
}

// Close ends the session.
func (c closingRW) Close(ctx context.Context) error { return c.s.Close(ctx) }

func rwLocker(t testing.TB, s *zookeeper.Session, cfg zklock.Config) *zklock.RW {
	t.Helper()
	l, err := zklock.NewRW(s, cfg)
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
	first, writer := rwLocker(t, session(t, addr), zklock.Config{}), rwLocker(t, session(t, addr), zklock.Config{})
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
					t.Fatal("a writer is in alongside a reader")
				case <-time.After(ttl / 5): // long after the message
				}
				give(one)
				give(<-granted)
			})
		})
	}
}

// A waiter is admitted although the reply to that is lost.
func TestLostAdmissionCostsNoPlace(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr, key := testbedtest.ZooKeeper(t), rand.Text()
		proxy := testbedtest.StartProxy(t, addr)
		reader, writer := rwLocker(t, session(t, addr), zklock.Config{}), rwLocker(t, session(t, proxy.Addr()), zklock.Config{})
		lease, err := patiently(t, reader.AcquireRead, key)
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan error, 1)
		go func() {
			lease, err := writer.Acquire(t.Context(), key)
			if err == nil {
				err = lease.Release(t.Context())
			}
			granted <- err
		}()
		waiters(t, reader, key, 1)
		proxy.DropReply(key + "\x00") // the path that ends with key, to write the fencing token
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil || proxy.Dropped() != 1 {
			t.Errorf("with %d lost replies: %v", proxy.Dropped(), err)
		}
	})
}
