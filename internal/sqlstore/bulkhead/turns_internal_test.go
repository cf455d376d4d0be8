package bulkhead

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
)

var errLockTimeout = &mysql.MySQLError{Number: 1205}

// Only a wait that ended with a lock timeout was in vain. One that failed otherwise, or panicked, keeps no expiry from the next.
func TestOnlyALockTimeoutIsAWaitInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewTurns()
		wait := func(sku string, err error) error { return s.Wait(sku, func() error { return err }) }
		panics := func(sku string) {
			defer func() { _ = recover() }()
			_ = s.Wait(sku, func() error { panic("a row") })
		}
		broken := errors.New("broken connection")
		for range 2 {
			if err := wait("a", broken); !errors.Is(err, broken) {
				t.Error(err)
			}
			panics("a")
		}
		if err := wait("a", errLockTimeout); !errors.Is(err, errLockTimeout) {
			t.Error(err)
		}
		for range 2 {
			if err := wait("a", nil); !errors.Is(err, ErrNoTurn) {
				t.Errorf("just after a lock timeout: %v", err)
			}
			if err := wait("b", nil); err != nil {
				t.Error(err)
			}
			panics("b")
		}
		s.Found(slices.Values([]string{"a"}))
		if err := errors.Join(wait("a", nil), wait("a", nil)); err != nil {
			t.Errorf("a row that was had without a wait: %v", err)
		}
		if err := wait("a", errLockTimeout); !errors.Is(err, errLockTimeout) {
			t.Error(err)
		}
		time.Sleep(stuckPause)
		panics("a")
		if err := wait("b", errLockTimeout); !errors.Is(err, errLockTimeout) {
			t.Error(err)
		}
		time.Sleep(stuckPause)
		err := s.Wait("a", func() error {
			if err := wait("b", nil); !errors.Is(err, ErrNoTurn) {
				t.Errorf("while an expiry waits for a row that was stuck: %v", err)
			}
			return nil
		})
		if err := errors.Join(err, wait("b", nil), wait("b", nil), wait("a", nil)); err != nil {
			t.Error(err)
		}
	})
}

// Expiries wait in turn for a row that many want. Once the one whose turn it is has waited for long, the others go.
func TestExpiriesOfARowWaitInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewTurns()
		for _, c := range []struct {
			each time.Duration
			had  int64
		}{{10 * time.Millisecond, 10}, {stuckTurn + time.Millisecond, 1}} {
			var had, gone, waiting atomic.Int64
			var expiries sync.WaitGroup
			began := time.Now()
			for range 10 {
				expiries.Go(func() {
					err := s.Wait("a", func() error {
						if waiting.Add(1) > 1 {
							t.Error("two expiries wait for one row")
						}
						time.Sleep(c.each)
						waiting.Add(-1)
						return nil
					})
					if errors.Is(err, ErrNoTurn) && time.Since(began) == stuckTurn {
						gone.Add(1)
					} else if err == nil {
						had.Add(1)
					}
				})
			}
			expiries.Wait()
			if had.Load() != c.had || gone.Load() != 10-c.had {
				t.Errorf("of 10 expiries of a row that comes free after %v %d had it and %d went", c.each, had.Load(), gone.Load())
			}
		}
	})
}
