package testbedtest

import "os"

// Size returns how much of something a test does: usual in a run that somebody
// waits for, and soak when SHOP_TEST_SOAK=1 asks for the full size.
func Size(usual, soak int) int {
	if os.Getenv("SHOP_TEST_SOAK") == "1" {
		return soak
	}
	return usual
}
