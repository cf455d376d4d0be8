package memindex_test

import (
	"testing"
	"testing/synctest"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
	"example.com/shop/internal/timeout/timeouttest"
)

func harness() timeouttest.IndexHarness {
	return timeouttest.IndexHarness{
		Clients: func(_ *testing.T, n int) []timeout.Index {
			x, out := memindex.New(memindex.Config{}), make([]timeout.Index, n)
			for i := range out {
				out[i] = x
			}
			return out
		},
		Wipe: func(t *testing.T, x timeout.Index, _, _ string) {
			t.Helper()
			m, ok := x.(*memindex.Index)
			if !ok {
				t.Fatalf("the index is a %T", x)
			}
			m.Wipe()
		},
	}
}

// The conformance tests run on fake time, where they are exact, and on real time, where goroutines race.
func TestIndex(t *testing.T) {
	h := harness()
	h.Bubble = synctest.Test
	t.Run("bubble", func(t *testing.T) { timeouttest.RunIndex(t, h) })
	t.Run("real", func(t *testing.T) { timeouttest.RunIndex(t, harness()) })
}

func TestMain(m *testing.M) { testbedtest.Main(m) }
