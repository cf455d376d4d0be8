package lab

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/stock"
)

func runUnlockEarly(ctx context.Context, r *Run) {
	s := r.open(ctx)
	t := s.theater("the last unit: the lock is released before, or after the commit", Legend{Holds: "has the lease, the right outcome", Stale: "a write too many", Waits: "waits for the lease, or not committed"})
	early, audit := t.unlock(ctx, "early", stock.WriteBack, true)
	r.Effect(early == [2]string{accepted, accepted} && audit.Oversold() == 1,
		"unlock, then commit: both orders were accepted, and the last unit was sold %s", count(int(audit.Accepted()), "time"))
	late, audit := t.unlock(ctx, "late", stock.WriteBack, false)
	r.Cure(late == [2]string{accepted, outOfStock} && audit.OK(), "commit, then unlock: the order of B was %s", late[1])
	fenced, audit := t.unlock(ctx, "row lock", stock.Fenced, true)
	r.Cure(fenced == [2]string{accepted, outOfStock} && audit.OK(),
		"a row lock and a token in the transaction: unlock, then commit, and the order of B was %s", fenced[1])
}

// unlock returns the outcomes of A, which unlocks early or not, and of B.
func (t *theater) unlock(ctx context.Context, name string, update stock.Update, early bool) (outcomes [2]string, audit stock.Audit) {
	c := t.scene(ctx, name, update, 1)
	when := map[bool]string{true: "early"}[early]
	a := c.holder(ctx, "A", longTTL, pointRead+","+pointCommit, "unlock", when)
	b := c.holder(ctx, "B", longTTL, pointRead)
	a.acquires(ctx)
	c.step("A has the lease")
	c.pace(ctx)
	a.Continue()
	if early {
		a.releases(ctx)
	}
	ready := a.Until(ctx, pointCommit)
	if early {
		c.step("A has written, has released its lease, and stops before its COMMIT")
		c.pace(ctx)
		c.overtaken(ctx, a, b)
	} else {
		c.step("A has written, and stops before its COMMIT with its lease")
		c.inOrder(ctx, a, b)
	}
	c.span("A", a.locked.At, a.released.At, Holds, "has the lease")
	c.span("A's write", ready.At, a.done.At, Waits, "not committed")
	c.mark("A's write", a.done.At, true, "A commits: %s", a.done.Value)
	audit = c.judge(ctx)
	b.draw(time.Time{}, audit.OK())
	return [2]string{a.done.Value, b.done.Value}, audit
}

// overtaken lets B take the lease and read before A commits.
func (c *scene) overtaken(ctx context.Context, a, b *holder) {
	b.acquires(ctx)
	c.step("B gets the lease at once, and begins to order before A has committed")
	b.Continue()
	c.pace(ctx)
	a.orders(ctx)
	c.step("A commits: %s", a.done.Value)
	b.done = b.Until(ctx, pointDone)
	c.step("B writes: %s", b.done.Value)
	b.releases(ctx)
}

// inOrder lets B wait for the lease until A has committed.
func (c *scene) inOrder(ctx context.Context, a, b *holder) {
	b.asks()
	locks := c.locker()
	await(ctx, "B to wait for the lease", func() bool {
		state := must(locks.Inspect(ctx, stock.LockKey(c.sku)))
		return state.Waiters > 0 || fmt.Sprint(state.Fence.Token) != a.token() // or B has the lease, which is wrong
	})
	c.step("B asks for the lease, which A still has")
	c.pace(ctx)
	a.finishes(ctx)
	c.step("A commits, and then releases its lease: %s", a.done.Value)
	b.gets(ctx)
	c.pace(ctx)
	b.finishes(ctx)
	c.step("B gets the lease, and reads what A has written: %s", b.done.Value)
}

// locker returns a client of the locks in Redis, to look at them.
func (s *stores) locker() *redislock.Locker {
	return must(redislock.New(s.r.client(s.Redis), redislock.Config{}))
}
