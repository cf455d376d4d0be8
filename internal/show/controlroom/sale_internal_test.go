package controlroom

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A sale whose audits take longer than the interval between them has one at a time, and a last one at its end.
func TestSaleHasOneAuditAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Room{changed: make(chan struct{})}
		s := &sale{Running: true, Lanes: []*lane{{SKU: "a"}}, stop: func() {}}
		var audits, running atomic.Int64
		audit := func(context.Context, *sale) {
			if running.Add(1) > 1 {
				t.Error("an audit begins before the previous one has ended")
			}
			defer running.Add(-1)
			audits.Add(1)
			time.Sleep(2 * auditEvery)
		}
		done := make(chan struct{})
		r.tasks.Go(func() { r.watch(t.Context(), s, done, audit) })
		time.Sleep(time.Minute)
		before := audits.Load()
		close(done)
		r.tasks.Wait()
		if after := audits.Load() - before; before < 4 || after != 1 || s.Running {
			t.Errorf("%d audits in a minute, and %d after it, running %v; want some, one and false", before, after, s.Running)
		}
	})
}
