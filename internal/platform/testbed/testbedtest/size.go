package testbedtest

import (
	"os"
	"testing"
)

// Size returns usual, or soak if SHOP_TEST_SOAK=1 asks for the full size.
func Size(usual, soak int) int {
	if os.Getenv("SHOP_TEST_SOAK") == "1" {
		return soak
	}
	return usual
}

// FullSize skips a test that takes minutes, unless SHOP_TEST_SOAK=1 asks for
// everything: make soak.
func FullSize(t testing.TB) {
	t.Helper()
	if Size(0, 1) == 0 {
		t.Skip("runs at full size only: make soak")
	}
}

// Measured is for a test whose figures depend on the machine: it runs alongside others, but alone at full size.
func Measured(t *testing.T) {
	t.Helper()
	if Size(0, 1) == 0 {
		t.Parallel()
	}
}
