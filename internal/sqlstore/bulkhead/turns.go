package bulkhead

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"example.com/shop/internal/sqldb"
	"example.com/shop/internal/stock"
)

const (
	// stuckPause is how long an expiry does not wait for a row again that it has waited for in vain. Until then it
	// takes the row only when it finds it free.
	stuckPause = 5 * time.Second

	// stuckForget is how long ago that may have been at most to count.
	stuckForget = time.Minute

	// stuckTurn is how long expiries wait for one that waits for the same row. A row that many want has come free by then.
	stuckTurn = 200 * time.Millisecond
)

// ErrNoTurn says that an expiry does not wait for a row, as that was in vain before, or seems to be.
var ErrNoTurn = fmt.Errorf("bulkhead: no expiry waits for the row: %w", stock.ErrRowLocked)

// Turns are of the SKUs whose rows expiries wait for, or have waited for in vain. One expiry at a time waits for the row of a SKU.
// Of the SKUs that were waited for in vain, however many they are, one is waited for at a time. So the
// others continue with theirs.
type Turns struct {
	mu    sync.Mutex
	pause map[string]time.Time // until when nobody waits for the row of the SKU
	turns map[string]turn      // of the SKUs that are waited for
	again bool                 // one of them was waited for in vain
}

// turn is the wait of an expiry for the row of a SKU.
type turn struct {
	ends  time.Time // others wait for it until then
	over  chan struct{}
	again bool // the SKU was waited for in vain
}

// NewTurns returns Turns in which nobody waits.
func NewTurns() *Turns {
	return &Turns{pause: make(map[string]time.Time), turns: make(map[string]turn)}
}

// Wait calls f, which waits for the row of sku, or fails with ErrNoTurn. Only a lock timeout of f is a wait in vain.
func (s *Turns) Wait(sku string, f func() error) (err error) {
	mine, err := s.enter(sku)
	if err != nil {
		return err
	}
	err = ErrNoTurn // if f panics
	defer func() { s.leave(sku, mine, err) }()
	err = f()
	return err
}

// enter waits until it is the caller's turn.
func (s *Turns) enter(sku string) (turn, error) {
	for {
		s.mu.Lock()
		until, again := s.pause[sku]
		again = again && time.Since(until) < stuckForget
		other, taken := s.turns[sku]
		if again && (s.again || time.Now().Before(until)) {
			s.mu.Unlock()
			return turn{}, ErrNoTurn
		}
		if !taken {
			mine := turn{time.Now().Add(stuckTurn), make(chan struct{}), again}
			s.turns[sku], s.again = mine, s.again || again
			s.mu.Unlock()
			return mine, nil
		}
		s.mu.Unlock()
		select {
		case <-other.over:
		case <-time.After(time.Until(other.ends)):
			return turn{}, ErrNoTurn
		}
	}
}

func (s *Turns) leave(sku string, mine turn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(mine.over)
	delete(s.turns, sku)
	s.again = s.again && !mine.again
	switch {
	case err == nil:
		delete(s.pause, sku)
	case sqldb.LockTimeout(err):
		s.pause[sku] = time.Now().Add(stuckPause)
	}
}

// Found says that an expiry has got rows of skus without a wait.
func (s *Turns) Found(skus iter.Seq[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sku := range skus {
		delete(s.pause, sku)
	}
}
