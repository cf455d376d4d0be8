package lab

import (
	"context"
	"strconv"
	"time"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/stock"
)

func runClockBack(ctx context.Context, r *Run) {
	servers := r.replicated(ctx, true)
	s := r.open(ctx)
	t := s.theater("the promoted replica has lost a grant, and its clock is an hour behind", Legend{Holds: "has the lock, the right outcome", Stale: "the grant is lost, or the holder is refused"})
	c := t.scene(ctx, "fenced", stock.Fenced, 2)
	a := c.holder(ctx, "A", longTTL, pointRead, "redis", servers.master.URL())
	b := c.holder(ctx, "B", longTTL, pointRead, "redis", servers.replica.URL())
	next := c.holder(ctx, "C", longTTL, pointRead, "redis", servers.replica.URL())
	check(servers.replica.SetClock(-clockJump))
	servers.lag(ctx)
	c.step("the clock of the replica is an hour behind, and the replication has stopped")
	a.acquires(ctx)
	c.pace(ctx)
	a.finishes(ctx)
	c.step("the master grants the lock to A. A sells 1 of 2 units, and the row stores its token: %s", a.done.Value)
	c.pace(ctx)
	servers.promote(ctx)
	promoted := time.Now()
	c.step("the master is killed, and the replica is promoted. It has never seen the token of A")
	c.pace(ctx)
	b.acquires(ctx)
	back := stepBack(a.token(), b.token())
	c.step("the new master grants the lock to B. Its token is %.0f s lower than that of A, and B alone has the lock", back.Seconds())
	c.pace(ctx)
	b.finishes(ctx)
	c.step("B writes: %s. So would every later holder for an hour", b.done.Value)
	c.pace(ctx)
	locker := must(redislock.New(servers.after, redislock.Config{}))
	check(locker.RaiseCounter(ctx, stock.LockKey(c.sku), must(strconv.ParseUint(a.token(), 10, 64))))
	raised := time.Now()
	c.step("the shop raises the counter of the lock above the token that the row has accepted")
	c.pace(ctx)
	next.acquires(ctx)
	c.pace(ctx)
	next.finishes(ctx)
	c.step("C gets the lock with a token that is greater, and sells the last unit: %s", next.done.Value)
	for _, h := range []struct {
		*holder
		label string
	}{{a, "token"}, {b, "1 h lower"}, {next, "above A's"}} {
		c.span(h.name, h.locked.At, h.released.At, Holds, h.label)
		c.mark(h.name, h.done.At, h.done.Value == accepted, "%s writes: %s", h.name, h.done.Value)
	}
	c.mark("Redis", promoted, false, "the replica is promoted: the grant of A is lost, the clock is an hour behind")
	c.mark("Redis", raised, true, "the counter is raised above the accepted token")
	audit := c.judge(ctx)
	r.Measure("the token went backwards by", back.Seconds(), "s")
	r.Effect(back > clockJump/2 && b.done.Value == staleToken, "the token went backwards, and the row refused the only holder: nothing is sold twice, and it sells nothing")
	r.Cure(stepBack(a.token(), next.token()) < 0 && next.done.Value == accepted && audit.OK(), "after the counter was raised, the next holder sold the last unit: %s", next.done.Value)
}

// stepBack is by how much the second token is lower than the first. Tokens are microseconds.
func stepBack(first, second string) time.Duration {
	return time.Duration(must(strconv.ParseInt(first, 10, 64))-must(strconv.ParseInt(second, 10, 64))) * time.Microsecond
}
