package sqllock_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/sqllock"
)

// TestClockSetBackBlocksNoKey: the row of a holder that has died ends far in the future of the clock. A step of less than a
// TTL leaves its lease as it is.
func TestClockSetBackBlocksNoKey(t *testing.T) {
	t.Parallel()
	stores(t, func(t testing.TB, s store) {
		s.create(t)
		const long = time.Minute
		cfg := sqllock.Config{TTL: long, MaxTTL: long}
		dead, l, key := s.locker(t, cfg), s.locker(t, cfg), rand.Text()
		lease := take(t, dead, key)
		step := func(d time.Duration) {
			exec(t, s.open(t), "UPDATE leases SET expires_at = expires_at + ? WHERE name = ?", d.Microseconds(), key)
		}
		step(long / 2)
		if _, err := l.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("set back by half a TTL: %v, want ErrHeld", err)
		}
		step(24 * time.Hour)
		if state, err := l.Inspect(t.Context(), key); err != nil || state.Held {
			t.Errorf("Inspect: %+v, %v", state, err)
		}
		next := take(t, l, key)
		if next.Fence().Token <= lease.Fence().Token {
			t.Errorf("token %d after %d", next.Fence().Token, lease.Fence().Token)
		}
		step(24 * time.Hour)
		waited, err := dead.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		waited.Release(t.Context())
	})
}
