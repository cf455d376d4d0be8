package app

import (
	"testing"
	"testing/synctest"
	"time"
)

// A store is far away if it takes so long to respond that an order would notice.
func TestLatencyOfAFarStoreIsAWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]Verdict{farAway - time.Millisecond: OK, farAway: Warn} {
			r := report{store: "redis"}
			r.latency(func() error { time.Sleep(took); return nil })
			if len(r.checks) != 1 || r.checks[0].Verdict != want {
				t.Errorf("after %v: %+v, want %v", took, r.checks, want)
			}
		}
	})
}
