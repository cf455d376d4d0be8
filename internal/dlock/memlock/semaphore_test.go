package memlock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
)

// services are semaphores in memory, one service per number of permits.
type services struct {
	mu        sync.Mutex
	byPermits map[int]*memlock.Semaphore
}

func (s *services) get(permits int) *memlock.Semaphore {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPermits[permits] == nil {
		s.byPermits[permits] = memlock.NewSemaphore(memlock.SemaphoreConfig{Permits: permits, TTL: 10 * time.Second})
	}
	return s.byPermits[permits]
}

func TestSemaphore(t *testing.T) {
	s := services{byPermits: map[int]*memlock.Semaphore{}}
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
	s := memlock.NewSemaphore(memlock.SemaphoreConfig{TTL: 10 * time.Second})
	dlocktest.Run(t, dlocktest.Harness{
		New:    func(testing.TB) dlock.Locker { return dlock.Mutex(s) },
		TTL:    10 * time.Second,
		Expire: func(_ testing.TB, key string) { s.Expire(key) },
		FIFO:   true,
		Bubble: synctest.Test,
	})
}
