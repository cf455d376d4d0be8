package sqlstore

import (
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/sqlerr"
	"example.com/shop/internal/stock"
)

// stuckPause is how long an expiry does not wait for a row again that it has waited for in vain. Until then it
// takes the row only when it finds it free.
const stuckPause = 5 * time.Second

// stuckForget is how long ago that may have been at most to count.
const stuckForget = time.Minute

// errStuck says that an expiry does not wait for a row, as that was in vain before.
var errStuck = fmt.Errorf("sqlstore: no expiry waits for the row: %w", stock.ErrRowLocked)

// stuck is the SKUs whose rows expiries have waited for in vain. However many there are, one expiry at a time
// waits for one of them, so the others continue with theirs.
type stuck struct {
	mu      sync.Mutex
	pause   map[string]time.Time // until when nobody waits for the row of the SKU
	waiting bool                 // somebody waits for one of them
}

func newStuck() *stuck { return &stuck{pause: make(map[string]time.Time)} }

// wait calls f, which waits for the row of sku, or fails with errStuck. Only a lock timeout of f is a wait in vain.
func (s *stuck) wait(sku string, f func() error) (err error) {
	s.mu.Lock()
	until, again := s.pause[sku]
	again = again && time.Since(until) < stuckForget
	if again && (s.waiting || time.Now().Before(until)) {
		s.mu.Unlock()
		return errStuck
	}
	s.waiting = s.waiting || again
	s.mu.Unlock()
	err = errStuck // if f panics
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if again {
			s.waiting = false
		}
		switch {
		case err == nil:
			delete(s.pause, sku)
		case sqlerr.LockTimeout(err):
			s.pause[sku] = time.Now().Add(stuckPause)
		}
	}()
	err = f()
	return err
}
