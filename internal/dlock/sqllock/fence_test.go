package sqllock_test

import (
	"crypto/rand"
	"errors"
	"math"
	"testing"

	"example.com/shop/internal/dlock/sqllock"
)

// The token keeps growing when the clock of the database is behind the last one, and
// RaiseCounter raises it.
func TestFenceWhenTheClockIsBehind(t *testing.T) {
	t.Parallel()
	stores(t, func(t testing.TB, s store) {
		s.create(t)
		l, key := s.locker(t, sqllock.Config{TTL: ttl}), rand.Text()
		const high = 9_000_000_000_000_000_001
		if err := errors.Join(l.RaiseCounter(t.Context(), key, high), l.RaiseCounter(t.Context(), key, 1)); err != nil {
			t.Fatal(err)
		}
		for want := uint64(high + 1); want <= high+3; want++ {
			lease := take(t, l, key)
			if got := lease.Fence().Token; got != want {
				t.Errorf("token = %d, want %d", got, want)
			}
			lease.Release(t.Context())
		}
		if err := l.RaiseCounter(t.Context(), key, math.MaxInt64); err == nil {
			t.Error("RaiseCounter accepts a token that the column cannot raise")
		}
	})
}
