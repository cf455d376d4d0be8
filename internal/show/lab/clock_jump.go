package lab

import (
	"context"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/stock"
)

// clockJump is by how much a clock jumps, as the texts say: longer than any TTL.
const clockJump = time.Hour

func runClockJump(ctx context.Context, r *Run) {
	s := r.open(ctx)
	j := &clockJumps{
		quorum: &quorum{r: r},
		theater: s.theater("five healthy servers: the clock of server 3 jumps while A holds the lock of servers 1, 2 and 3", Legend{
			Holds: "a valid lease, the right outcome", Stale: "valid for A alone, a write too many, a jump",
		}),
	}
	for i := range j.servers {
		server := must(testbed.StartRedis(ctx, testbed.RedisConfig{OwnClock: i == 2}))
		r.Defer(server.Close)
		j.servers[i] = server
	}
	r.Step("five independent Redis servers run, as Redlock asks for")
	unfenced := j.jump(ctx, "unfenced", stock.WriteBack)
	r.Effect(unfenced.valid == leaseValid && unfenced.a.done.Value == accepted && unfenced.audit.Oversold() == 1,
		"as published, without a token: both had a majority and a valid lease, and the last unit was sold %s", count(int(unfenced.audit.Accepted()), "time"))
	fenced := j.jump(ctx, "fenced", stock.Fenced)
	r.Effect(fenced.valid == leaseValid, "fenced: both had a majority and a valid lease, too")
	r.Cure(fenced.greater() && fenced.a.done.Value == staleToken && fenced.audit.OK(), "with a fencing token: the token of B was greater, and the write of A was %s", fenced.a.done.Value)
}

// clockJumps are sales under Redlock on five servers, one of which has a clock of its own.
type clockJumps struct {
	*quorum
	*theater

	ahead time.Duration // of the clock of server 3
}

// jump has A take the lock from servers 1, 2 and 3. Then the clock of server 3 jumps, and B takes the lock from servers 3, 4 and 5.
func (j *clockJumps) jump(ctx context.Context, name string, update stock.Update) *granted {
	g := &granted{scene: j.scene(ctx, name, update, 1)}
	g.a = g.holder(ctx, "A", longTTL, pointRead+","+pointLater, "servers", j.urls(ctx, 3), "settle", "-1ns")
	g.b = g.holder(ctx, "B", longTTL, pointRead, "servers", j.urls(ctx, len(j.servers)), "settle", "-1ns")
	g.a.acquires(ctx)
	g.step("A reaches servers 1, 2 and 3 only. That is a majority: A has the lock, for %s", longTTL)
	g.pace(ctx)
	j.ahead += clockJump
	check(j.servers[2].SetClock(j.ahead))
	jumped := time.Now()
	g.step("the clock of server 3 jumps an hour ahead: for this server, the lease of A has expired")
	g.pace(ctx)
	g.b.acquires(ctx)
	later := g.a.To(ctx, pointLater)
	g.valid = later.Value
	g.step("B gets servers 3, 4 and 5: a second majority. A checks its own lease: %s", g.valid)
	g.pace(ctx)
	g.b.finishes(ctx)
	g.step("B sells the last unit: %s", g.b.done.Value)
	g.pace(ctx)
	g.a.orders(ctx)
	g.step("A writes, in the time of its lease: %s", g.a.done.Value)
	g.mark("server 3", jumped, false, "its clock jumps an hour ahead")
	g.a.drawn("valid for A, not for server 3", g.b.locked.At, g.a.done.Value != accepted)
	g.b.draw(time.Time{}, true)
	g.audit = g.judge(ctx)
	return g
}
