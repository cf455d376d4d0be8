package redislock_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestKeysThatBreakTheHashTag(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l := locker(t, redistest.Client(t, "redis://"+miniredis.RunT(t).Addr()))
		for _, key := range []string{"", "}", "}x", "x}", "a{}b"} {
			if _, err := l.Acquire(t.Context(), key); err == nil {
				t.Errorf("key %q is accepted", key)
			}
		}
	})
}
