package memsem_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/memsem"
	"example.com/shop/internal/dlock/semlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// services are semaphores in memory, one service per number of permits.
type services struct {
	mu        sync.Mutex
	byPermits map[int]*memsem.Semaphore
}

func (s *services) get(permits int) *memsem.Semaphore {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPermits[permits] == nil {
		s.byPermits[permits] = memsem.New(memsem.Config{Permits: permits, TTL: 10 * time.Second})
	}
	return s.byPermits[permits]
}

func TestSemaphore(t *testing.T) {
	s := services{byPermits: map[int]*memsem.Semaphore{}}
	dlocktest.RunSemaphore(t, dlocktest.SemaphoreHarness{
		New: func(_ testing.TB, permits int) dlock.Semaphore { return s.get(permits) },
		TTL: 10 * time.Second,
		Expire: func(_ testing.TB, key string) {
			for _, service := range s.byPermits {
				service.Expire(key)
			}
		},
		FIFO: true, Ordered: true,
		Bubble: synctest.Test,
	})
}

// A semaphore with one permit is a lock.
func TestMutex(t *testing.T) {
	s := memsem.New(memsem.Config{TTL: 10 * time.Second})
	dlocktest.Run(t, dlocktest.Harness{
		New:    func(testing.TB) dlock.Locker { return semlock.Mutex(s) },
		TTL:    10 * time.Second,
		Expire: func(_ testing.TB, key string) { s.Expire(key) },
		FIFO:   true,
		Bubble: synctest.Test,
	})
}
