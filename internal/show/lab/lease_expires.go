package lab

import (
	"context"
	"net/url"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/stock"
)

// The TTL of leases that are to expire, and of those that are not.
const (
	shortTTL = "1s"
	longTTL  = "60s"
)

func runLeaseExpires(ctx context.Context, r *Run) {
	s := r.open(ctx)
	t := s.theater("A is cut off from Redis: its lease expires before its commit", Legend{Holds: "a valid lease, the right outcome", Stale: "cut off, an expired lease, a write too many", Waits: "waits for the lease"})
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
	c.mark(a.name, cut, false, "cut off from Redis")
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
