package lab

import (
	"context"
	"time"

	"example.com/shop/internal/stock"
)

// pausedTTL is longer than shortTTL: on a busy machine too, the lease must be valid until the pause.
const pausedTTL = "1500ms"

func runPausedHolder(ctx context.Context, r *Run) {
	s := r.open(ctx)
	t := s.theater("A is paused by SIGSTOP for longer than its lease", Legend{Holds: "a valid lease, the right outcome", Stale: "an expired lease, a write too many", Waits: "waits for the lease", Paused: "paused", Neutral: "runs"})
	unfenced, audit := t.pausedHolder(ctx, "unfenced", stock.WriteBack)
	r.Effect(unfenced.read.Value == leaseValid, "before the pause, A found its lease valid")
	r.Effect(unfenced.done.Value == accepted && audit.Oversold() == 1,
		"without a fencing token: the late write was %s, and the last unit was sold %s", unfenced.done.Value, count(int(audit.Accepted()), "time"))
	fenced, audit := t.pausedHolder(ctx, "fenced", stock.Fenced)
	r.Cure(fenced.read.Value == leaseValid && fenced.done.Value == staleToken && audit.OK(),
		"with a fencing token: A found its lease valid too, and the late write was %s", fenced.done.Value)
}

// comparison says what becomes of the token of a write, which each lease has.
func comparison(update stock.Update) string {
	if update == stock.Fenced {
		return "the row compares its token"
	}
	return "nothing compares its token"
}

// pausedHolder returns A, which is paused for longer than its lease, while B orders.
func (t *theater) pausedHolder(ctx context.Context, name string, update stock.Update) (a *holder, audit stock.Audit) {
	c := t.scene(ctx, name, update, 1)
	a = c.holder(ctx, "A", pausedTTL, pointRead+","+pointLater)
	b := c.holder(ctx, "B", longTTL, pointRead)
	a.acquires(ctx)
	c.pace(ctx)
	a.read = a.To(ctx, pointLater) // where it checks its lease
	c.step("A has the lease with fencing token %s, checks it before its transaction, and finds: %s", a.ordinal(), a.read.Value)
	a.Pause()
	paused := time.Now()
	c.step("SIGSTOP pauses A: from now on it executes nothing, and renews nothing")
	b.acquires(ctx)
	c.step("the lease of A has expired: B, which waited, has the lease with fencing token %s", b.ordinal())
	c.pace(ctx)
	b.finishes(ctx)
	c.step("B sells the last unit: %s", b.done.Value)
	c.pace(ctx)
	a.Continue() // read as soon as it resumes
	resumed := time.Now()
	a.Resume()
	a.done = a.Until(ctx, pointDone)
	a.releases(ctx)
	c.step("SIGCONT resumes A, which cannot see that it was paused. It writes, and %s: %s", comparison(update), a.done.Value)
	c.step("A releases its lease: %s", a.released.Value)
	c.span("A runs", a.locked.At, paused, Neutral, "")
	c.span("A runs", paused, resumed, Paused, "paused by SIGSTOP")
	c.span("A runs", resumed, a.released.At, Neutral, "")
	c.mark("A", a.read.At, true, "A checks: %s", a.read.Value)
	a.draw(b.locked.At, a.done.Value != accepted)
	b.draw(time.Time{}, true)
	return a, c.judge(ctx)
}
