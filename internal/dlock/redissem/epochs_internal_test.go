package redissem

import (
	"strconv"
	"testing"
)

// The last keys are remembered, however many there were before.
func TestEpochsRememberTheLastKeys(t *testing.T) {
	t.Parallel()
	var e epochs
	const kept, n = 4096, 3*4096 + 7
	for i := range n {
		e.set(strconv.Itoa(i), strconv.Itoa(-i))
	}
	for i := n - kept; i < n; i++ {
		if got := e.of(strconv.Itoa(i)); got != strconv.Itoa(-i) {
			t.Fatalf("of key %d, the client remembers %q", i, got)
		}
	}
	if got := e.of("0"); got != "" {
		t.Errorf("the client remembers the first key, too: %q", got)
	}
}
