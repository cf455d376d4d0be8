package redislock_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
)

// The token keeps growing when the clock of the server is behind the last one,
// and keeps all of its sixteen digits.
func TestFenceWhenTheClockIsBehind(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key, l := rand.Text(), locker(t, rdb)
		if err := rdb.Set(t.Context(), fenceKey(key), "9000000000000001", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		want := uint64(9000000000000001)
		for range 3 {
			want++
			lease, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if got := lease.Fence().Token; got != want {
				t.Errorf("token = %d, want %d", got, want)
			}
			lease.Release(t.Context())
		}
	})
}
