package controlroom

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/stock"
)

// slowAuditor is a database whose audits take until their time limit.
type slowAuditor struct {
	t       *testing.T
	audits  atomic.Int64
	running atomic.Int64
}

func (a *slowAuditor) Audit(ctx context.Context, _ string) ([]stock.Audit, error) {
	if a.running.Add(1) > 1 {
		a.t.Error("an audit begins before the previous one has ended")
	}
	defer a.running.Add(-1)
	a.audits.Add(1)
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (*slowAuditor) Close() error { return nil }

// A sale whose audits take longer than the interval between them has one at a time, and a last one at its end.
func TestSaleHasOneAuditAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &slowAuditor{t: t}
		r := &Room{books: a, changed: make(chan struct{})}
		s := &sale{Running: true, Lanes: []*lane{{SKU: "a"}}, stop: func() {}}
		done := make(chan struct{})
		r.tasks.Go(func() { r.watch(t.Context(), s, done) })
		time.Sleep(time.Minute)
		before := a.audits.Load()
		close(done)
		r.tasks.Wait()
		if after := a.audits.Load() - before; before < 4 || after != 1 {
			t.Errorf("%d audits in a minute, and %d after it; want some and one", before, after)
		}
		if s.Running || s.Lanes[0].Books == nil || s.Lanes[0].Books.Error == "" {
			t.Errorf("at the end, the sale is %+v, with %+v", s, s.Lanes[0].Books)
		}
	})
}
