package redissem_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/semlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestSemaphore(t *testing.T) {
	t.Parallel()
	dlocktest.RunSemaphore(t, redistest.SemaphoreHarness(t, testbedtest.Redis(t)))
}

func TestSemaphoreOnMiniredis(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	dlocktest.RunSemaphore(t, redistest.SemaphoreHarness(t, "redis://"+m.Addr()))
}

// A semaphore with one permit is a lock.
func TestSemaphoreAsMutex(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	h := redistest.SemaphoreHarness(t, testbedtest.Redis(t))
	dlocktest.Run(t, dlocktest.Harness{
		New:    func(t testing.TB) dlock.Locker { return semlock.Mutex(h.New(t, 1)) },
		TTL:    h.TTL,
		Expire: h.Expire,
		FIFO:   true,
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			s, link := h.Behind(t, 1)
			return semlock.Mutex(s), link
		},
	})
}
