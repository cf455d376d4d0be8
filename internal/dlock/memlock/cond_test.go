package memlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
)

func TestCond(t *testing.T) {
	l := memlock.New(memlock.Config{TTL: 10 * time.Second})
	c := dlocktest.CondClient{Locker: l, A: memlock.NewCond(l), B: memlock.NewCond(l)}
	dlocktest.RunCond(t, dlocktest.CondHarness{
		New:       func(testing.TB) dlocktest.CondClient { return c },
		TTL:       10 * time.Second,
		Expire:    func(_ testing.TB, key string) { l.Expire(key) },
		Reentrant: true,
		Bubble:    synctest.Test,
	})
}
