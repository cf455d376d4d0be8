package zklock

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// A writer has handed the key on within its process, and its node is not deleted yet, when somebody
// forces it out. The fencing token of the next writer is on record already, and stays there.
func TestForceReleaseAfterAHandOff(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		addr, key := testbedtest.ZooKeeper(t), rand.Text()
		open := func() *RW {
			s, err := zookeeper.Connect(ctx, zookeeper.Config{Servers: []string{addr}, Timeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
			})
			l, err := NewRW(s, Config{})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l, admin := open(), open()
		first, err := l.Acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan *dlock.Lease, 1)
		go func() {
			lease, err := l.Acquire(ctx, key)
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		l.queue.mu.Lock()
		node := l.queue.grants[first.Fence().Owner].node
		l.queue.mu.Unlock()
		var second *dlock.Lease
		for second == nil {
			l.queue.free(node.Path) // as release does before it deletes the node
			select {
			case second = <-granted:
			case <-time.After(time.Millisecond):
			}
		}
		if err := admin.ForceRelease(ctx, key); err != nil {
			t.Fatal(err)
		}
		if err := second.Release(ctx); err != nil {
			t.Error(err)
		}
		_ = first.Release(ctx) // which was force-released
		reader, err := admin.AcquireRead(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if reader.Fence().Token < second.Fence().Token {
			testbedtest.Final(t, "a reader has the fence %v after a writer with %v", reader.Fence(), second.Fence())
		}
		if err := reader.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}
