package e2e_test

import (
	"sync"
	"testing"
	"time"
)

// stallDetector measures how long this process, and with it the machine, did not run. Time limits of tests exclude
// stalls, because a virtual machine may be paused for seconds at any time.
type stallDetector struct {
	mu   sync.Mutex
	last time.Time // when the process was last seen to continue
	sum  time.Duration
}

// unnoticed is the longest pause that counts as ordinary scheduling.
const unnoticed = 500 * time.Millisecond

// detectStalls runs until the test ends.
func detectStalls(t *testing.T) *stallDetector {
	t.Helper()
	s := &stallDetector{last: time.Now()}
	over, stop := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-over
	})
	go func() {
		defer close(over)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.total()
			}
		}
	}()
	return s
}

// total returns the total time for which the process was paused.
func (s *stallDetector) total() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if d := now.Sub(s.last); d > unnoticed {
		s.sum += d
	}
	s.last = now
	return s.sum
}
