package testbedtest

import (
	"testing"
	"time"
)

// Eventually waits until done reports true, and fails the test if that takes three minutes. It asks after 5 ms, then
// less and less often, and every 50 ms at the end. A page that is asked all the time draws nothing else.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	pause := 5 * time.Millisecond
	for end := time.Now().Add(3 * time.Minute); !done(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
		<-time.After(pause)
	}
}
