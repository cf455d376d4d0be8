package sqlstore

import (
	"sync"
	"time"
)

// stuckPause is how long an expiry does not wait for a row again that it has waited for in vain. Until then it
// takes the row only when it finds it free.
const stuckPause = 5 * time.Second

// stuckForget is how long ago that may have been at most to count.
const stuckForget = time.Minute

// stuck is the SKUs whose rows expiries have waited for in vain. However many there are, one expiry at a time
// waits for one of them, and for nothing else, so the others continue with theirs.
type stuck struct {
	mu      sync.Mutex
	pause   map[string]time.Time // until when nobody waits for the row of the SKU
	waiting string               // the one of them that is waited for
}

func newStuck() *stuck { return &stuck{pause: make(map[string]time.Time)} }

// enter reports whether an expiry may wait for the rows of skus. If so, call leave afterwards.
func (s *stuck) enter(skus []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sku := range skus {
		until, ok := s.pause[sku]
		if !ok || time.Since(until) > stuckForget {
			continue
		}
		if len(skus) > 1 || s.waiting != "" || time.Now().Before(until) {
			return false
		}
		s.waiting = sku
	}
	return true
}

// leave says how many of skus were had, the first ones.
func (s *stuck) leave(skus []string, had int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == skus[0] {
		s.waiting = ""
	}
	for _, sku := range skus[:had] {
		delete(s.pause, sku)
	}
	if had < len(skus) {
		s.pause[skus[had]] = time.Now().Add(stuckPause)
	}
}
