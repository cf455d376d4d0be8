package testbedtest

import (
	"testing"
	"time"
)

// Eventually waits until done reports true, and fails the test if that takes three minutes. It asks every 5 ms.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !done(); {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}
