package etcdlock_test

import (
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestRW(t *testing.T) {
	t.Parallel()
	addr := testbedtest.Etcd(t)
	admin := client(t, addr)
	inspector := rwLocker(t, admin, etcdlock.Config{})
	with := func(t testing.TB, cfg etcdlock.Config) dlock.RWLocker {
		return rwLocker(t, connected(t, client(t, addr)), cfg)
	}
	dlocktest.RunRW(t, dlocktest.RWHarness{
		New: func(t testing.TB) dlock.RWLocker { return with(t, etcdlock.Config{}) },
		TTL: ttl,
		Expire: func(t testing.TB, key string) {
			state, err := inspector.Inspect(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			holders := inOrder(t, admin, rwQueue(key))
			for _, kv := range holders.Kvs[:len(holders.Kvs)-state.Waiters] {
				if _, err := admin.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
					t.Fatal(err)
				}
			}
		},
		Waiting: func(t testing.TB, key string) int {
			state, err := inspector.Inspect(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return state.Waiters
		},
		FIFO:      true,
		Reentrant: true,
		Answers:   answers,
		NoReentry: func(t testing.TB) dlock.RWLocker { return with(t, etcdlock.Config{NoReentry: true}) },
		Capped: func(t testing.TB, limit time.Duration) dlock.RWLocker {
			return with(t, etcdlock.Config{MaxHold: limit})
		},
		WaiterTTL: ttl,
		Behind: func(t testing.TB) (dlock.RWLocker, dlocktest.Link) {
			cli, link := behind(t, addr)
			return rwLocker(t, cli, etcdlock.Config{}), link
		},
	})
}

func rwQueue(key string) string { return "shop/rwlocks/" + url.PathEscape(key) + "/" }

func rwLocker(t testing.TB, cli *clientv3.Client, cfg etcdlock.Config) *etcdlock.RW {
	t.Helper()
	cfg.TTL = ttl
	l, err := etcdlock.NewRW(cli, cfg)
	if err != nil {
		t.Fatal(err)
	}
	closeInTime(t, l)
	return l
}
