package e2e_test

import (
	"sync"
	"testing"
	"time"
)

// stillness notices when this process, and with it the machine, is paused or has no turn. What has a limit of time is judged
// without that: a virtual machine may be stopped for seconds at any moment.
type stillness struct {
	mu    sync.Mutex
	last  time.Time // when the process was last seen to continue
	total time.Duration
}

// unnoticed is how long a process may have no turn because others have theirs.
const unnoticed = 500 * time.Millisecond

// watchStillness looks until the test ends.
func watchStillness(t *testing.T) *stillness {
	t.Helper()
	s := &stillness{last: time.Now()}
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
				s.stood()
			}
		}
	}()
	return s
}

// stood returns for how long the process was paused, in all.
func (s *stillness) stood() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if d := now.Sub(s.last); d > unnoticed {
		s.total += d
	}
	s.last = now
	return s.total
}
