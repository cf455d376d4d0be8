package redisbus

import (
	"sync"
	"time"
)

// echo watches whether this process hears itself. It does not if the connection on
// which it listens ends at another server than the one to which everybody sends: at a
// master that was replaced and does not know it yet, say. Such a connection is alive by
// all other signs.
type echo struct {
	mu    sync.Mutex
	since time.Time // when the first of the frames was sent that have not been heard; zero if there are none
}

// sending is called before frames are sent, so that none is heard before it.
func (e *echo) sending(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		e.since = now
	}
}

// heard is called when a frame has come back, and reset when nothing can be expected: it
// was not sent, or the connection is a new one.
func (e *echo) heard() { e.reset() }

func (e *echo) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since = time.Time{}
}

// missing is for how long frames have not come back that the server took.
func (e *echo) missing(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.since.IsZero() {
		return 0
	}
	return now.Sub(e.since)
}
