package memlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLocker(t *testing.T) {
	l := memlock.New(memlock.Config{TTL: 10 * time.Second})
	dlocktest.Run(t, dlocktest.Harness{
		New:    func(*testing.T) dlock.Locker { return l },
		TTL:    10 * time.Second,
		Expire: func(_ *testing.T, key string) { l.Expire(key) },
		FIFO:   true,
		Bubble: synctest.Test,
	})
}
