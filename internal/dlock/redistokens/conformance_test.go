package redistokens_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	dlocktest.RunSemaphore(t, redistest.TokensHarness(t, testbedtest.Redis(t)))
}

func TestTokensOnMiniredis(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	dlocktest.RunSemaphore(t, redistest.TokensHarness(t, "redis://"+m.Addr()))
}

// Tokens with one permit are a lock.
func TestTokensAsMutex(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	h := redistest.TokensHarness(t, testbedtest.Redis(t))
	dlocktest.Run(t, dlocktest.Harness{
		New:    func(t testing.TB) dlock.Locker { return dlock.Mutex(h.New(t, 1)) },
		TTL:    h.TTL,
		Expire: h.Expire,
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			s, link := h.Behind(t, 1)
			return dlock.Mutex(s), link
		},
	})
}
