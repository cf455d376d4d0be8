package lab

import (
	"context"
	"net/url"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/stock"
)

func leaseExpiresLab() Lab {
	return Lab{
		Number: 3, Name: "lease-expires", Title: "The lease expires before the commit",
		Question: "A process holds a lock with a TTL, and its work takes longer than the TTL. Does the lock still protect the stock?",
		Expect: "The lease of A expires before A commits. B gets the lock and sells the last unit. Without a fencing token A sells the same unit again; with " +
			"one, the database refuses the write of A.",
		Why: "A lock in Redis is a lease: after its TTL anybody else may have it. Renewal helps only while the renewals reach Redis. Here the network between A " +
			"and Redis is cut, but the network between A and the database is not. So A still writes, on the base of what it read under its old lease.",
		Cure: "Give the lock service a number that grows with each grant, the fencing token, and let the database compare it. The row stores the token of its " +
			"last writer. A write with an older token is refused, in the transaction that locks the row. The service then takes a new lease and tries again. " +
			"Here the row lock alone would find no unit either, because it reads the level again. The token also refuses what was computed before.",
		Links: []Link{
			{"the comparison of the tokens", "internal/sqlstore/fenced.go"},
			{"what a token is", "internal/dlock/dlock.go"},
			{"the test", "internal/sqlstore/blackbox/late_write_test.go"},
		},
		Exercises: [3]string{
			"Make the TTL ten times as long. What becomes better, and what becomes worse when a holder dies?",
			"Let A write before B does. Is the write of A accepted although its lease has expired? Is that an error? Read late_write_test.go.",
			"Let admit in fenced.go accept every token, and run the lab again. Which outcome has the write of A now, and for which work would that be wrong?",
		},
		Script: runLeaseExpires, worker: orderWorker,
	}
}

// The TTL of leases that are to expire, and of those that are not.
const (
	shortTTL = "1s"
	longTTL  = "60s"
)

func runLeaseExpires(ctx context.Context, r *Run) {
	s := r.open(ctx)
	t := s.theater("A is cut off from Redis: its lease expires before its commit")
	unfenced, audit := t.leaseExpires(ctx, "unfenced", stock.WriteBack)
	r.Effect(unfenced == [2]string{accepted, accepted} && audit.Oversold() == 1,
		"without a fencing token: the late write was %s, and the last unit was sold %s", unfenced[0], count(int(audit.Accepted()), "time"))
	fenced, audit := t.leaseExpires(ctx, "fenced", stock.Fenced)
	r.Cure(fenced == [2]string{staleToken, accepted} && audit.OK(), "with a fencing token: the late write was %s", fenced[0])
}

// leaseExpires returns the outcomes of the orders of A, whose lease expires, and of B.
func (t *theater) leaseExpires(ctx context.Context, name string, update stock.Update) (outcomes [2]string, audit stock.Audit) {
	c := t.scene(ctx, name, update, 1)
	proxy, address := t.proxied(ctx)
	a := c.holder(ctx, "A", shortTTL, pointRead, "redis", address)
	b := c.holder(ctx, "B", longTTL, pointRead)
	a.acquires(ctx)
	c.step("A has the lease, with fencing token %s, and stops before its transaction", a.ordinal())
	c.pace(ctx)
	proxy.BlackHole()
	cut := time.Now()
	c.step("the network between A and Redis is cut: no renewal arrives from now on")
	b.acquires(ctx)
	c.step("the lease of A has expired: B, which waited, has the lease with fencing token %s", b.ordinal())
	c.pace(ctx)
	b.finishes(ctx)
	c.step("B sells the last unit: %s", b.done.Value)
	c.pace(ctx)
	a.finishes(ctx)
	c.step("A continues, and writes under its expired lease: %s", a.done.Value)
	c.mark(a.name, cut, true, "cut off from Redis")
	a.draw(b.locked.At, a.done.Value != accepted)
	b.draw(time.Time{}, true)
	return [2]string{a.done.Value, b.done.Value}, c.judge(ctx)
}

// proxied returns a proxy to Redis, and its address for a worker.
func (s *stores) proxied(ctx context.Context) (*testbed.Proxy, string) {
	address := must(url.Parse(s.Redis))
	proxy := must(testbed.NewProxy(ctx, address.Host))
	s.r.Defer(proxy.Close)
	address.Host = proxy.Addr()
	return proxy, address.String()
}
