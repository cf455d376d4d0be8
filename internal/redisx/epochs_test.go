package redisx

import (
	"strconv"
	"testing"
)

// The last keys are remembered, however many there were before.
func TestEpochsRememberTheLastKeys(t *testing.T) {
	t.Parallel()
	var e Epochs
	const n = 3*maxEpochs + 7
	for i := range n {
		e.Set(strconv.Itoa(i), strconv.Itoa(-i))
	}
	for i := n - maxEpochs; i < n; i++ {
		if got := e.Of(strconv.Itoa(i)); got != strconv.Itoa(-i) {
			t.Fatalf("of key %d, the client remembers %q", i, got)
		}
	}
	if n := len(e.latest) + len(e.older); n > 2*maxEpochs {
		t.Errorf("%d keys are remembered", n)
	}
}
