package lab

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/stock"
)

// sellers are two processes that sell the last unit under a lock, one of which is paused.
type sellers struct {
	name, point  string
	update       stock.Update
	late, prompt *Process
	sold, wrote  Report
	locked       Report
	audit        stock.Audit
}

// pauseHolders pauses a holder on five healthy servers beyond its TTL.
func (q *quorum) pauseHolders(ctx context.Context) {
	s := q.r.open(ctx)
	urls := q.urls(ctx, len(q.servers))
	unchecked := &sellers{name: "no token check", point: pointRead, update: stock.WriteBack}
	fenced := &sellers{name: "token check", point: pointLocked, update: stock.Fenced}
	both := []*sellers{unchecked, fenced}
	for _, v := range both {
		q.startSellers(ctx, s, v, urls)
	}
	q.r.Step("all five servers are healthy. Two SKUs have a unit each; the row of one checks tokens. Process C of each SKU has its lock, and is paused with SIGSTOP")
	for _, v := range both {
		v.late.Pause()
	}
	paused := time.Now()
	for _, v := range both {
		v.prompt.Continue()
	}
	for _, v := range both {
		v.sold = v.prompt.Until(ctx, pointDone)
	}
	q.r.Step("the TTL is over: process D of each SKU has its lock, and sells the unit (%s, and %s)", unchecked.sold.Value, fenced.sold.Value)
	for _, v := range both {
		resumed := time.Now()
		v.late.Resume()
		v.wrote = v.late.To(ctx, pointDone)
		v.audit = s.audit(ctx, v.name)
		q.r.Step("%s: process C resumes, and writes: %s. The unit has been sold %s", v.name, v.wrote.Value, count(int(v.audit.Accepted()), "time"))
		q.r.Measure("oversold: "+v.name, float64(v.audit.Oversold()), "units")
		q.picture.Span(v.name+": C", v.locked.At, paused, Holds, "C")
		q.picture.Span(v.name+": C", paused, resumed, Paused, "C is paused")
		q.picture.Mark(v.name+": C", v.wrote.At, kindOf(v.wrote.Value != accepted), "late write: "+v.wrote.Value)
		q.picture.Span(v.name+": D", paused, v.sold.At, Waits, "D waits for the lock")
		q.picture.Mark(v.name+": D", v.sold.At, Holds, "write: "+v.sold.Value)
	}
	q.r.Effect(unchecked.audit.Oversold() == 1, "without a token check, a paused holder of a majority of five oversold by %d", unchecked.audit.Oversold())
	q.r.Cure(fenced.sold.Value == accepted && fenced.wrote.Value == staleToken && fenced.audit.OK(), "with a token check, the late write was %s", fenced.wrote.Value)
}

// startSellers has the first process of a SKU hold the lock, and the second one ready.
func (q *quorum) startSellers(ctx context.Context, s *stores, v *sellers, urls string) {
	s.stock(ctx, v.name, "redlock", 1)
	start := func(name, stop string) *Process {
		return q.r.Start(ctx, v.name+": "+name, s.task("name", name, "sku", v.name, "update", fmt.Sprint(int(v.update)), "stop", stop,
			"servers", urls, "ttl", redlockTTL.String(), "settle", "-1ns"))
	}
	v.prompt = start("D", pointReady)
	v.prompt.Until(ctx, pointReady)
	v.late = start("C", v.point)
	if v.locked = v.late.Until(ctx, pointLocked); v.point != pointLocked {
		v.late.Until(ctx, v.point)
	}
}
