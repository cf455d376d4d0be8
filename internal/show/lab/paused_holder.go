package lab

import (
	"context"
	"time"

	"example.com/shop/internal/stock"
)

func pausedHolderLab() Lab {
	return Lab{
		Number: 4, Name: "paused-holder", Title: "A paused holder writes late",
		Question: "A process checks that its lease is valid, and writes at once. Is the check enough?",
		Expect: "A lease has a TTL, here 1.5 s: it expires if its holder does not renew it for that long. SIGSTOP pauses A between the check and the write, as a " +
			"garbage collection or a migrated virtual machine may do. The lease expires, and B sells the last unit. A resumes and writes: its check is old. " +
			"The lock issues a fencing token in both runs, but only the fenced run compares it with the row. Only there can the database refuse the write.",
		Why: "A paused process cannot see that its lease has expired. It executes nothing, so no timer, no renewal and no watchdog of its own helps. Between " +
			"the last check and the write there is always a gap, and a pause fits into every gap.",
		Cure: "The resource checks, not the holder. The database compares the fencing token of the write with the last one that it has accepted, in the " +
			"transaction that locks the row. It needs no clock for that, and nothing of it runs in the paused process.",
		Links: []Link{
			{"the comparison of the tokens", "internal/sqlstore/fenced.go"},
			{"the validity of a lease", "internal/dlock/lease.go"},
			{"the test of the late write", "internal/sqlstore/blackbox/late_write_test.go"},
			{"the test with paused processes", "internal/dlock/redislock/paused_holder_test.go"},
		},
		Exercises: [3]string{
			"Let A check its lease a second time, after it has resumed. Where must the next pause be to defeat that check too?",
			"Which pauses have you seen in production? Name one that is longer than your usual TTL.",
			"A worker of a lab stops at named points: see the constants in order_worker.go. Let A stop at commit, where its transaction has the row and is about to " +
				"be committed, and pause it there. What do B and the database do then?",
		},
		Script: runPausedHolder, worker: orderWorker,
	}
}

// pausedTTL is longer than shortTTL: on a busy machine too, the lease must be valid until the pause.
const pausedTTL = "1500ms"

func runPausedHolder(ctx context.Context, r *Run) {
	s := r.open(ctx)
	t := s.theater("A is paused by SIGSTOP for longer than its lease")
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
