package lab

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

const (
	stuckTTL  = time.Second
	stuckHold = stuckTTL + stuckTTL/2
	renewals  = 8 // of the watchdog
	cutTTL    = 1500 * time.Millisecond
)

// pair is a holder, and a process that waits for it.
type pair struct {
	name         string
	a, b         *Process
	locked, next Report
}

// shifted draws with times that count from the start of a part of the run.
type shifted struct {
	*Picture
	zero, began time.Time
}

func (s shifted) at(t time.Time) time.Time { return s.zero.Add(t.Sub(s.began)) }

func (s shifted) span(row string, from, until time.Time, kind Kind, label string) {
	s.Span(row, s.at(from), s.at(until), kind, label)
	s.Later(row, s.began.Sub(s.zero))
}

func runWatchdog(ctx context.Context, r *Run) {
	s := r.open(ctx)
	rdb := r.client(s.Redis)
	picture := r.Draw(&Picture{Title: "A is stuck (first four rows), or is cut off from Redis (last four); B waits", Legend: Legend{
		Holds: "has the lock", Stale: "renewed forever, or works without its lock", Waits: "waits for the lock", Neutral: "the lease ends",
	}})
	zero := time.Now()
	stuckWork(ctx, s, rdb, shifted{picture, zero, zero})
	cutOff(ctx, s, shifted{Picture: picture, zero: zero})
}

// startPair starts a pair of which A has the lock.
func startPair(ctx context.Context, s *stores, name, redis string, task ...string) *pair {
	p := &pair{name: name}
	start := func(who, address string) *Process {
		return s.r.ready(ctx, name+": "+who, s.task(append(task, "name", who, "redis", address)...))
	}
	p.a = start("A", redis)
	p.b = start("B", s.Redis)
	p.locked = p.a.To(ctx, pointLocked)
	return p
}

// loss returns the report of the loss of the lease of A, or none after a time that is many TTLs.
func (p *pair) loss(ctx context.Context) Report {
	bounded, cancel := context.WithTimeout(ctx, 10*cutTTL)
	defer cancel()
	lost, err := p.a.next(bounded, pointLost)
	if bounded.Err() == nil || ctx.Err() != nil {
		check(err)
	}
	return lost
}

// stuckWork has the work of two holders hang.
func stuckWork(ctx context.Context, s *stores, rdb redis.UniversalClient, picture shifted) {
	limited := startPair(ctx, s, "max hold", s.Redis, "key", "stuck", "ttl", stuckTTL.String(), "max-hold", stuckHold.String())
	watched := startPair(ctx, s, "watchdog", s.Redis, "key", "stuck", "ttl", stuckTTL.String(), "lock", "textbook")
	picture.began = limited.locked.At
	s.r.Step("A of each pair has the lock (TTL %v), and its work hangs, as a call without a deadline does. B waits", stuckTTL)
	for _, p := range []*pair{watched, limited} {
		p.b.Continue()
	}
	lost := limited.loss(ctx)
	if lost.Point == "" {
		s.r.Cure(false, "the lease with a maximum hold time did not end")
		return
	}
	limited.next = limited.b.Until(ctx, pointLocked)
	s.r.Step("max hold: the lease of A ends after %.0f ms (%s), and B gets the lock", milliseconds(lost.At.Sub(limited.locked.At)), lost.Value)
	var last Report
	for range renewals {
		last = watched.a.Until(ctx, pointRenewed)
	}
	owner := must(rdb.Get(ctx, "textbook:stuck").Result())
	held := last.At.Sub(watched.locked.At)
	s.r.Step("watchdog: after %.0f ms and %d renewals, %s still has the lock, and would keep it forever", milliseconds(held), renewals, owner)
	picture.span("watchdog: A", watched.locked.At, last.At, Stale, "stuck, and renewed forever")
	picture.span("watchdog: B", watched.locked.At, last.At, Waits, "waits forever")
	picture.span("max hold: A", limited.locked.At, lost.At, Holds, "stuck")
	picture.Mark("max hold: A", picture.at(lost.At), Neutral, "the lease ends: "+lost.Value)
	picture.span("max hold: B", limited.locked.At, limited.next.At, Waits, "waits")
	picture.span("max hold: B", limited.next.At, limited.next.At.Add(stuckTTL/3), Holds, "B")
	s.r.Measure("stuck work kept the lock: watchdog, at least", milliseconds(held), "ms")
	s.r.Measure("stuck work kept the lock: max hold", milliseconds(lost.At.Sub(limited.locked.At)), "ms")
	s.r.Effect(owner == "A" && held > 2*stuckTTL, "the watchdog renewed the lock of stuck work %d times; B did not get it", renewals)
	s.r.Cure(lost.Value == string(dlock.MaxHold), "the lease with a maximum hold time ended, and B got the lock")
}

// cutOff takes Redis away from two holders.
func cutOff(ctx context.Context, s *stores, picture shifted) {
	proxy, address := s.proxied(ctx)
	notified := startPair(ctx, s, "lease", address, "key", "cut", "ttl", cutTTL.String())
	watched := startPair(ctx, s, "no notice", address, "key", "cut", "ttl", cutTTL.String(), "lock", "textbook")
	picture.began = notified.locked.At
	proxy.BlackHole()
	s.r.Step("A of another two pairs has the lock (TTL %v), and is cut off from Redis. B waits", cutTTL)
	for _, p := range []*pair{watched, notified} {
		p.b.Continue()
	}
	watched.next = watched.b.Until(ctx, pointLocked)
	finished := watched.a.To(ctx, pointDone)
	s.r.Step("no notice: the TTL is over, and B has the lock. A is still at work, for its watchdog ignores failed renewals")
	lost := notified.loss(ctx)
	if lost.Point == "" {
		s.r.Cure(false, "the lease did not notify its work of the loss")
		return
	}
	notified.next = notified.b.Until(ctx, pointLocked)
	before := notified.next.At.Sub(lost.At)
	s.r.Step("lease: the context of A ends (%s) %.0f ms before B gets the lock", lost.Value, milliseconds(before))
	picture.span("no notice: A", watched.locked.At, watched.next.At, Holds, "A works")
	picture.span("no notice: A", watched.next.At, finished.At.Add(stuckTTL/3), Stale, "A works")
	picture.span("no notice: B", watched.locked.At, watched.next.At, Waits, "waits")
	picture.span("no notice: B", watched.next.At, finished.At.Add(stuckTTL/3), Holds, "B works")
	picture.span("lease: A", notified.locked.At, lost.At, Holds, "A works")
	picture.Mark("lease: A", picture.at(lost.At), Neutral, "the lease ends: "+lost.Value)
	picture.span("lease: B", notified.locked.At, notified.next.At, Waits, "waits")
	picture.span("lease: B", notified.next.At, notified.next.At.Add(stuckTTL/3), Holds, "B works")
	s.r.Measure("the lease ended before the next holder began", milliseconds(before), "ms")
	s.r.Effect(finished.At.After(watched.next.At), "the work under a watchdog continued after B had the lock")
	s.r.Cure(before > 0, "the lease notified its work of the loss %.0f ms before B had the lock", milliseconds(before))
}
