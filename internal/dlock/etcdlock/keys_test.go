package etcdlock_test

import (
	"crypto/rand"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A key without a meaning to etcd is one to this package.
func TestKeysOfAnyShape(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		cli := client(t, testbedtest.Etcd(t))
		l, unique := locker(t, cli), rand.Text()
		var leases []*dlock.Lease
		for _, key := range []string{"a/b", "a/", "a", "/", "//", "%2F", "a\x00b", "ä ö"} {
			lease, err := l.TryAcquire(ctx, unique+key)
			if err != nil {
				t.Errorf("key %q: %v", key, err)
				continue
			}
			leases = append(leases, lease)
		}
		for _, lease := range leases {
			release(ctx, t, lease)
		}
		if _, err := l.Acquire(ctx, ""); err == nil {
			t.Error("the empty key is accepted")
		}
		if n := len(keysOf(t, cli, lockQueue(unique))); n > 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}
