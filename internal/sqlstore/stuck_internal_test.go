package sqlstore

import (
	"errors"
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
		s := newStuck()
		wait := func(sku string, err error) error { return s.wait(sku, func() error { return err }) }
		panics := func(sku string) {
			defer func() { _ = recover() }()
			_ = s.wait(sku, func() error { panic("a row") })
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
			if err := wait("a", nil); !errors.Is(err, errStuck) {
				t.Errorf("just after a lock timeout: %v", err)
			}
			if err := wait("b", nil); err != nil {
				t.Error(err)
			}
			panics("b")
		}
		time.Sleep(stuckPause)
		panics("a")
		if err := wait("b", errLockTimeout); !errors.Is(err, errLockTimeout) {
			t.Error(err)
		}
		time.Sleep(stuckPause)
		err := s.wait("a", func() error {
			if err := wait("b", nil); !errors.Is(err, errStuck) {
				t.Errorf("while an expiry waits for a row that was stuck: %v", err)
			}
			return nil
		})
		if err := errors.Join(err, wait("b", nil), wait("b", nil), wait("a", nil)); err != nil {
			t.Error(err)
		}
	})
}
