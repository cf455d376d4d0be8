package testbedtest

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// beat is how often a stall detector reads the clock.
const beat = 10 * time.Millisecond

// StallDetector measures how long nothing ran: its own timer came late. Leases that expire during a stall are no
// failure, and observations of a test around it may be meaningless.
type StallDetector struct {
	stop, stopped chan struct{}
	began         time.Time

	mu             sync.Mutex
	last           time.Time
	longest, total time.Duration
	second         time.Time     // when the present second began
	lost, most     time.Duration // in the present second, and in the worst one so far
}

// DetectStalls reads the clock every few milliseconds until the test ends.
func DetectStalls(t testing.TB) *StallDetector {
	t.Helper()
	s := watch()
	t.Cleanup(func() { s.end() })
	return s
}

// watch begins to watch.
func watch() *StallDetector {
	now := time.Now()
	s := &StallDetector{stop: make(chan struct{}), stopped: make(chan struct{}), began: now, last: now, second: now}
	go s.run()
	return s
}

func (s *StallDetector) run() {
	defer close(s.stopped)
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			s.look()
		case <-s.stop:
			s.look()
			return
		}
	}
}

// look asks both clocks: the monotonic one may not count while a whole machine is stopped.
func (s *StallDetector) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	late := max(now.Sub(s.last), now.Round(0).Sub(s.last.Round(0))) - beat
	s.last = now
	if now.Sub(s.second) > time.Second {
		s.second, s.lost = now, 0
	}
	if late < beat {
		return
	}
	s.longest = max(s.longest, late)
	s.total += late
	s.lost += late
	s.most = max(s.most, s.lost)
}

// Longest returns the longest stall so far.
func (s *StallDetector) Longest() time.Duration {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.longest
}

// end returns for how long nothing ran, in words, and whether that is too long for a test of times.
func (s *StallDetector) end() (stood string, still bool) {
	close(s.stop)
	<-s.stopped
	all := s.last.Sub(s.began)
	stood = fmt.Sprintf("nothing ran for %v of %v, for %v of a second, and for %v at once",
		s.total.Round(time.Millisecond), all.Round(time.Millisecond), s.most.Round(time.Millisecond), s.longest.Round(time.Millisecond))
	return stood, s.longest >= standstill || s.most >= min(all, time.Second)/standstillShare
}
