package testbedtest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// StallDetector measures how long the process did not run. Leases that expire during a stall are no failure,
// and observations of a test around it may be meaningless.
type StallDetector struct {
	began   time.Time
	seen    atomic.Int64 // when it was last seen to run, in nanoseconds after began
	longest atomic.Int64
}

// DetectStalls reads the clock every few milliseconds until the test ends.
func DetectStalls(t testing.TB) *StallDetector {
	t.Helper()
	s := &StallDetector{began: time.Now()}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				now := int64(time.Since(s.began))
				s.longest.Store(max(s.longest.Load(), now-s.seen.Swap(now)))
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		watching.Wait()
	})
	return s
}

// Longest returns the longest stall so far.
func (s *StallDetector) Longest() time.Duration {
	return time.Duration(max(s.longest.Load(), int64(time.Since(s.began))-s.seen.Load()))
}
