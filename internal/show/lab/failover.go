package lab

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/stock"
)

// replicated is a Redis server and its replica, which replicates through a proxy.
type replicated struct {
	master, replica *testbed.Redis
	link            *testbed.Proxy
	before, after   redis.UniversalClient
}

// replicated starts both servers. The replica may have a clock of its own.
func (r *Run) replicated(ctx context.Context, ownClock bool) (s replicated) {
	s.master = must(testbed.StartRedis(ctx, testbed.RedisConfig{Args: []string{"--repl-diskless-sync-delay", "0"}}))
	r.Defer(s.master.Close)
	s.link = must(testbed.NewProxy(ctx, s.master.Addr()))
	r.Defer(s.link.Close)
	host, port, err := net.SplitHostPort(s.link.Addr())
	check(err)
	s.replica = must(testbed.StartRedis(ctx, testbed.RedisConfig{OwnClock: ownClock, Args: []string{"--replicaof", host + " " + port}}))
	r.Defer(s.replica.Close)
	s.before = r.client(s.master.URL())
	s.after = r.client(s.replica.URL())
	return s
}

// bareCounter is a key whose counter is a fencing token in the manner of many tutorials.
const bareCounter = "lab:token"

// count returns the next token of the bare counter.
func (s replicated) count(ctx context.Context, rdb redis.UniversalClient) int64 {
	return must(rdb.Incr(ctx, bareCounter).Result())
}

// lag issues a token, awaits its arrival at the replica, and then stops the replication.
func (s replicated) lag(ctx context.Context) {
	n := s.count(ctx, s.before)
	await(ctx, "the replica to have what the master has", func() bool {
		return s.after.Get(ctx, bareCounter).Val() == strconv.FormatInt(n, 10)
	})
	s.link.BlackHole()
}

// promote kills the master, and makes the replica a master.
func (s replicated) promote(ctx context.Context) {
	check(s.master.Kill())
	check(s.after.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
}

func runFailover(ctx context.Context, r *Run) {
	servers := r.replicated(ctx, false)
	s := r.open(ctx)
	f := &failover{replicated: servers, theater: s.theater("the master is killed before the replica has the grants of A", Legend{Holds: "has the lock, the right outcome", Stale: "the grant is lost, a write too many", Waits: "lags", Neutral: "the master, or a replica that follows it"})}
	for _, variant := range []struct {
		name   string
		update stock.Update
	}{{"unfenced", stock.WriteBack}, {"fenced", stock.Fenced}} {
		f.add(ctx, variant.name, variant.update)
	}
	f.happens(ctx)
	unfenced, fenced := f.variants[0], f.variants[1]
	r.Effect(unfenced.valid == leaseValid && fenced.valid == leaseValid, "the new master granted the lock to B, while A considered its lease valid")
	r.Effect(unfenced.a.done.Value == accepted && unfenced.audit.Oversold() == 1,
		"without a fencing token: the write of A was %s, and the last unit was sold %s", unfenced.a.done.Value, count(int(unfenced.audit.Accepted()), "time"))
	r.Effect(f.first == f.second, "a bare counter issued token %d, and then token %d", f.first, f.second)
	r.Cure(fenced.greater(), "the token of redislock grew over the failover, from %s of grant %s to %s of grant %s",
		fenced.a.token(), fenced.a.ordinal(), fenced.b.token(), fenced.b.ordinal())
	r.Cure(fenced.a.done.Value == staleToken && fenced.audit.OK(), "with a fencing token: the write of A was %s", fenced.a.done.Value)
}

// failover is one failover, with a SKU without and one with fencing tokens.
type failover struct {
	replicated
	*theater

	variants      []*granted
	first, second int64 // tokens of the bare counter, from the master and from the replica
	promoted      time.Time
}

// granted is a SKU whose lock is granted twice.
type granted struct {
	*scene

	a, b  *holder
	valid string // what A finds of its lease when B has the lock
	audit stock.Audit
}

func (g *granted) greater() bool {
	a, errA := strconv.ParseUint(g.a.token(), 10, 64)
	b, errB := strconv.ParseUint(g.b.token(), 10, 64)
	return errA == nil && errB == nil && b > a
}

// add puts a SKU on sale, and starts its processes: A uses the master, and B uses the replica, as if Sentinel named it.
func (f *failover) add(ctx context.Context, name string, update stock.Update) {
	g := &granted{}
	g.scene = f.scene(ctx, name, update, 1)
	g.a = g.holder(ctx, "A", longTTL, pointRead+","+pointLater, "redis", f.master.URL())
	g.b = g.holder(ctx, "B", longTTL, pointRead, "redis", f.replica.URL())
	f.variants = append(f.variants, g)
}

// happens is the failover: A gets the locks, the master is killed, B gets the locks, and both write.
func (f *failover) happens(ctx context.Context) {
	f.zero = time.Now()
	for _, g := range f.variants {
		g.began = f.zero // there is one failover, and so one clock
	}
	f.lag(ctx)
	lags := time.Now()
	f.r.Step("the replica has all that the master has; then a proxy stops the replication")
	f.variants[0].pace(ctx)
	for _, g := range f.variants {
		g.a.acquires(ctx)
		g.step("the master grants the lock to A, with fencing token %s", g.a.ordinal())
	}
	f.first = f.count(ctx, f.before)
	f.variants[0].pace(ctx)
	f.promote(ctx)
	f.promoted = time.Now()
	f.r.Step("the master is killed, and the replica is promoted with REPLICAOF NO ONE")
	f.variants[0].pace(ctx)
	f.second = f.count(ctx, f.after)
	f.r.Step("a bare counter issued token %d before the failover, and issues token %d after it", f.first, f.second)
	for _, g := range f.variants {
		f.both(ctx, g)
	}
	end := time.Now()
	f.picture.Rows = append([]Row{
		{Name: "Redis 1", Spans: []Span{{From: f.zero, Until: f.promoted, Kind: Neutral, Label: "master"}}, Marks: []Mark{{f.promoted, Stale, "killed: the grants to A are lost"}}},
		{Name: "Redis 2", Spans: []Span{{From: f.zero, Until: lags, Kind: Neutral}, {From: lags, Until: f.promoted, Kind: Waits, Label: "replica that lags"}, {From: f.promoted, Until: end, Kind: Neutral, Label: "master"}}},
	}, f.picture.Rows...)
}

// both lets B get the lock and write, and then A.
func (f *failover) both(ctx context.Context, g *granted) {
	g.b.acquires(ctx)
	later := g.a.To(ctx, pointLater)
	g.valid = later.Value
	g.step("the new master grants the lock to B, with fencing token %s. A checks its own lease: %s", g.b.ordinal(), g.valid)
	g.pace(ctx)
	g.b.finishes(ctx)
	g.step("B sells the last unit: %s", g.b.done.Value)
	g.pace(ctx)
	g.a.orders(ctx)
	g.step("A writes under its first lease: %s", g.a.done.Value)
	g.a.drawn("lost, and A cannot see it", f.promoted, g.a.done.Value != accepted)
	g.b.draw(time.Time{}, true)
	g.audit = g.judge(ctx)
}
