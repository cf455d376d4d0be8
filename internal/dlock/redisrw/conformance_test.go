package redisrw_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestRW(t *testing.T) {
	t.Parallel()
	dlocktest.RunRW(t, redistest.RWHarness(t, testbedtest.Redis(t)))
}

func TestRWOnMiniredis(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	dlocktest.RunRW(t, redistest.RWHarness(t, "redis://"+m.Addr()))
}
