package testbedtest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Stillness knows for how long a process did not run: what lapses meanwhile is nobody's
// fault, and what a test has seen around it may say nothing.
type Stillness struct {
	began   time.Time
	looked  atomic.Int64 // when it was last seen to run, in nanoseconds after began
	longest atomic.Int64
}

// WatchStillness looks at the clock every few milliseconds until the test ends.
func WatchStillness(t testing.TB) *Stillness {
	t.Helper()
	s := &Stillness{began: time.Now()}
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				now := int64(time.Since(s.began))
				s.longest.Store(max(s.longest.Load(), now-s.looked.Swap(now)))
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		looking.Wait()
	})
	return s
}

// Longest returns for how long at most the process was paused since it is watched.
func (s *Stillness) Longest() time.Duration {
	return time.Duration(max(s.longest.Load(), int64(time.Since(s.began))-s.looked.Load()))
}
