package memlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
)

func TestRW(t *testing.T) {
	l := memlock.NewRW(memlock.Config{TTL: 10 * time.Second})
	dlocktest.RunRW(t, dlocktest.RWHarness{
		New:         func(testing.TB) dlock.RWLocker { return l },
		TTL:         10 * time.Second,
		Expire:      func(_ testing.TB, key string) { l.Expire(key) },
		PhaseFair:   true,
		SharedFence: true,
		Reentrant:   true,
		NoReentry: func(testing.TB) dlock.RWLocker {
			return memlock.NewRW(memlock.Config{TTL: 10 * time.Second, NoReentry: true})
		},
		Capped: func(_ testing.TB, limit time.Duration) dlock.RWLocker {
			return memlock.NewRW(memlock.Config{TTL: 10 * time.Second, MaxHold: limit})
		},
		Bubble: synctest.Test,
	})
}
