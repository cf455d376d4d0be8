package lab

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/backoff"
)

const (
	basketTTL      = 1500 * time.Millisecond
	basketDeadline = 3 * basketTTL // for how long A waits for its second lock
)

// baskets are two processes that lock two SKUs in opposite order.
type baskets struct {
	s       *stores
	picture *Picture
	names   [2]string
	p       [2]*Process
}

func runDeadlock(ctx context.Context, r *Run) {
	s := r.open(ctx)
	rdb := r.client(s.Redis)
	locks := must(redislock.New(rdb, redislock.Config{TTL: basketTTL}))
	picture := r.Draw(&Picture{Title: "two baskets in opposite order", Legend: Legend{
		Holds: "has its locks", Stale: "holds one lock and waits for the other", Waits: "waits, and holds nothing", Neutral: "another process has rice",
	}})
	deadlock(ctx, s, picture)
	sortedLocks(ctx, s, locks, picture)
}

// start starts both processes.
func (b *baskets) start(ctx context.Context, name, sorted string) {
	deadlines := [2]time.Duration{basketDeadline, labTimeout}
	for i, basket := range []string{"tea rice", "rice tea"} {
		b.names[i] = fmt.Sprintf("%s: %c", name, 'A'+i)
		b.p[i] = b.s.r.ready(ctx, b.names[i], b.s.task(
			"basket", basket, "sorted", sorted, "ttl", basketTTL.String(), "deadline", deadlines[i].String()))
	}
}

// deadlock has each process hold what the other one wants. The processes report whether their leases were valid all
// the time, so the lab needs no poll that a busy machine may delay.
func deadlock(ctx context.Context, s *stores, picture *Picture) {
	b := &baskets{s: s, picture: picture}
	b.start(ctx, "unsorted", "no")
	var first [2]Report
	for i, p := range b.p {
		first[i] = p.To(ctx, pointFirst)
	}
	s.r.Step("unsorted: A has locked tea, and B has locked rice. Now each wants the other one")
	asked := time.Now()
	for _, p := range b.p {
		p.Continue()
	}
	fails := b.p[0].Until(ctx, pointFails, pointAll)
	if fails.Point == pointAll {
		fail("the machine was too busy for a renewal within %v: B has lost its lock", basketTTL)
	}
	all := b.p[1].Until(ctx, pointAll)
	if fails.Value != leaseValid || all.Value != leaseValid {
		fail("the machine was too busy for a renewal within %v: A says %q, B says %q", basketTTL, fails.Value, all.Value)
	}
	kept := fails.At.Sub(asked)
	s.r.Step("unsorted: after %.0f ms (TTL %v), both still hold one lock, renew its lease, and wait for the other one", milliseconds(kept), basketTTL)
	s.r.Step("unsorted: the deadline of the request is over for A, which gives up its order and releases tea. B continues, after it has waited for %.0f ms", milliseconds(all.At.Sub(asked)))
	b.p[1].To(ctx, pointReleased)
	for i, end := range []time.Time{fails.At, all.At} {
		picture.Span(b.names[i], first[i].At, asked, Holds, "")
		picture.Span(b.names[i], asked, end, Stale, [2]string{"holds tea, waits for rice", "holds rice, waits for tea"}[i])
	}
	picture.Mark(b.names[0], fails.At, Stale, "its deadline is over: it gives up, without an order")
	picture.Mark(b.names[1], all.At, Holds, "it has both locks, for A has given up")
	s.r.Measure(fmt.Sprintf("wait of B in the deadlock (TTL %v)", basketTTL), milliseconds(all.At.Sub(asked)), "ms")
	s.r.Effect(kept > 2*basketTTL && all.At.After(fails.At), "baskets in opposite order waited for each other for more than two TTLs, until one of them gave up")
}

// sortedLocks lets the same baskets take their locks in one order, in the situation that is the worst: both must wait before they have any.
func sortedLocks(ctx context.Context, s *stores, locks *redislock.Locker, picture *Picture) {
	b := &baskets{s: s, picture: picture}
	b.start(ctx, "sorted", "yes")
	third := must(persist(ctx, locks, "rice"))
	defer third.Release(ctx) //nolint:errcheck // it has been released, unless the lab fails
	asked := time.Now()
	for _, next := range []int{1, 0} {
		b.p[next].Continue()
		grabbed := waits(ctx, locks, 2-next)
		if grabbed && third.Err() != nil {
			fail("the machine was too busy for a renewal within %v: %w", basketTTL, third.Err())
		}
		if grabbed {
			s.r.Cure(false, "%s has locked tea while it waits for rice: the next cycle is a deadlock", b.names[next])
			return
		}
	}
	s.r.Step("sorted: another process has rice. B asks for its basket, then A: both wait for rice, and neither holds tea meanwhile")
	backoff.Sleep(ctx, basketTTL/3) // so that the picture shows it; nothing depends on it
	freed := time.Now()
	check(third.Release(ctx))
	picture.Span("another process", asked, freed, Neutral, "")
	ok, end := true, freed
	for _, next := range []int{1, 0} {
		all := b.p[next].Until(ctx, pointAll)
		released := b.p[next].To(ctx, pointReleased)
		s.r.Step("%s has locked rice and tea, and releases them", b.names[next])
		picture.Span(b.names[next], asked, all.At, Waits, "")
		picture.Mark(b.names[next], all.At, Holds, "it has both locks")
		ok, end = ok && released.Value == noError, released.At
	}
	s.r.Measure("both baskets with sorted locks, after rice is free", milliseconds(end.Sub(freed)), "ms")
	s.r.Cure(ok, "with sorted locks, neither basket held what the other one waited for, and both got their locks")
}

// waits returns as soon as so many wait for rice, and whether somebody has locked tea then. Before it waits, AcquireAll has tried both keys at once
// and released what it got.
func waits(ctx context.Context, locks *redislock.Locker, n int) (grabbed bool) {
	await(ctx, "baskets that wait for rice", func() bool {
		rice, errRice := locks.Inspect(ctx, "rice")
		tea, errTea := locks.Inspect(ctx, "tea") // after rice
		grabbed = tea.Held
		return errRice == nil && errTea == nil && rice.Waiters == n // else a busy machine may have kept Redis from answering in time
	})
	return grabbed
}
