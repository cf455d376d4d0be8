package lab

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/dlock/redislock"
)

func deadlockLab() Lab {
	return Lab{
		Number: 10, Name: "deadlock", Title: "Baskets in opposite order",
		Question: "One basket has tea and then rice, another has rice and then tea. Each process locks in the order of its basket. What happens?",
		Expect: "Each process holds one lock and waits for the other lock. Both renew their lease, so no TTL ends the deadlock. Only the deadline of a request does. " +
			"With sorted locks, both processes get what they want.",
		Why: "A deadlock needs a cycle of processes, each of which holds what the next one wants. A lease with renewal behaves as a lock without end. " +
			"A database notices the cycle and rolls one transaction back. A lock service sees two unrelated keys.",
		Cure: "Take the locks in one order everywhere. AcquireAll sorts the keys and drops duplicates, so a cycle is impossible. On Redis it takes all of them in one step. " +
			"A deadline for each request bounds the wait for what remains.",
		Links: []Link{
			{"sorted keys for every backend", "internal/dlock/multi.go"},
			{"all keys in one step on Redis", "internal/dlock/redislock/multi.go"},
			{"the strategies sort a basket, too", "internal/stock/strategy.go"},
			{"the test", "internal/dlock/redislock/multi_test.go"},
		},
		Exercises: [3]string{
			"Three baskets want tea and rice, rice and salt, salt and tea. Draw the cycle, and say which order of keys removes it.",
			"Release the first lock and start again if the second one is taken. Is that free of deadlocks? What else can happen?",
			"The rows of two baskets are locked in opposite order on MariaDB. Which error does one of them get, and who retries in this project?",
		},
		run: runDeadlock, worker: basketWorker,
	}
}

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

func runDeadlock(ctx context.Context, r *Run) error {
	s, err := r.open(ctx)
	if err != nil {
		return err
	}
	rdb, err := r.client(s.Redis)
	if err != nil {
		return err
	}
	locks, err := redislock.New(rdb, redislock.Config{TTL: basketTTL})
	if err != nil {
		return err
	}
	picture := &Picture{Title: "two baskets in opposite order"}
	r.Draw(picture)
	if err := deadlock(ctx, s, picture); err != nil {
		return err
	}
	return sortedLocks(ctx, s, locks, picture)
}

// start starts both processes.
func (b *baskets) start(ctx context.Context, name, sorted string) error {
	deadlines := [2]time.Duration{basketDeadline, labTimeout}
	for i, basket := range []string{"tea rice", "rice tea"} {
		b.names[i] = fmt.Sprintf("%s: %c", name, 'A'+i)
		var err error
		b.p[i], err = b.s.r.Start(ctx, b.names[i], b.s.task("basket", basket, "sorted", sorted, "ttl", basketTTL.String(), "deadline", deadlines[i].String()))
		if err != nil {
			return err
		}
		if _, err := b.p[i].Until(ctx, pointReady); err != nil {
			return err
		}
	}
	return nil
}

// deadlock has each process hold what the other one wants. The processes report whether their leases were valid all
// the time, so the lab needs no poll that a busy machine may delay.
func deadlock(ctx context.Context, s *stores, picture *Picture) error {
	b := &baskets{s: s, picture: picture}
	if err := b.start(ctx, "unsorted", "no"); err != nil {
		return err
	}
	var first [2]Report
	var err error
	for i, p := range b.p {
		if first[i], err = p.To(ctx, pointFirst); err != nil {
			return err
		}
	}
	s.r.Step("unsorted: A has locked tea, and B has locked rice. Now each wants the other one")
	asked := time.Now()
	for _, p := range b.p {
		if err := p.Continue(); err != nil {
			return err
		}
	}
	fails, err := b.p[0].Until(ctx, pointFails, pointAll)
	if err != nil {
		return err
	}
	if fails.Point == pointAll {
		return fmt.Errorf("the machine was too busy for a renewal within %v: B has lost its lock", basketTTL)
	}
	all, err := b.p[1].Until(ctx, pointAll)
	if err != nil {
		return err
	}
	if fails.Value != leaseValid || all.Value != leaseValid {
		return fmt.Errorf("the machine was too busy for a renewal within %v: A says %q, B says %q", basketTTL, fails.Value, all.Value)
	}
	kept := fails.At.Sub(asked)
	s.r.Step("unsorted: after %.0f ms (TTL %v), both still hold one lock, renew its lease, and wait for the other one", milliseconds(kept), basketTTL)
	s.r.Step("unsorted: the deadline of the request is over for A, which gives up its order and releases tea. B continues, after it has waited for %.0f ms", milliseconds(all.At.Sub(asked)))
	if _, err := b.p[1].To(ctx, pointReleased); err != nil {
		return err
	}
	for i, end := range []time.Time{fails.At, all.At} {
		picture.Span(b.names[i], first[i].At, asked, Holds, "")
		picture.Span(b.names[i], asked, end, Stale, [2]string{"holds tea, waits for rice", "holds rice, waits for tea"}[i])
	}
	picture.Mark(b.names[0], fails.At, Stale, "its deadline is over: it gives up, without an order")
	picture.Mark(b.names[1], all.At, Holds, "it has both locks, for A has given up")
	s.r.Measure(fmt.Sprintf("wait of B in the deadlock (TTL %v)", basketTTL), milliseconds(all.At.Sub(asked)), "ms")
	s.r.Effect(kept > 2*basketTTL && all.At.After(fails.At), "baskets in opposite order waited for each other for more than two TTLs, until one of them gave up")
	return nil
}

// sortedLocks lets the same baskets take their locks in one order, in the situation that is the worst: both must wait before they have any.
func sortedLocks(ctx context.Context, s *stores, locks *redislock.Locker, picture *Picture) error {
	b := &baskets{s: s, picture: picture}
	if err := b.start(ctx, "sorted", "yes"); err != nil {
		return err
	}
	third, err := persist(ctx, locks, "rice")
	if err != nil {
		return err
	}
	defer third.Release(ctx) //nolint:errcheck // it has been released, unless the lab fails
	asked := time.Now()
	for _, next := range []int{1, 0} {
		if err := b.p[next].Continue(); err != nil {
			return err
		}
		grabbed, err := waits(ctx, locks, 2-next)
		if err != nil {
			return err
		}
		if grabbed && third.Err() != nil {
			return fmt.Errorf("the machine was too busy for a renewal within %v: %w", basketTTL, third.Err())
		}
		if grabbed {
			s.r.Cure(false, "%s has locked tea while it waits for rice: the next cycle is a deadlock", b.names[next])
			return nil
		}
	}
	s.r.Step("sorted: somebody else has rice. B asks for its basket, then A: both wait for rice, and neither holds tea meanwhile")
	freed := time.Now()
	if err := third.Release(ctx); err != nil {
		return err
	}
	picture.Span("somebody else", asked, freed, Neutral, "")
	ok, end := true, freed
	for _, next := range []int{1, 0} {
		all, err := b.p[next].Until(ctx, pointAll)
		if err != nil {
			return err
		}
		released, err := b.p[next].To(ctx, pointReleased)
		if err != nil {
			return err
		}
		s.r.Step("%s has locked rice and tea, and releases them", b.names[next])
		picture.Span(b.names[next], asked, all.At, Waits, "")
		picture.Mark(b.names[next], all.At, Holds, "it has both locks")
		ok, end = ok && released.Value == noError, released.At
	}
	s.r.Measure("both baskets with sorted locks, after rice is free", milliseconds(end.Sub(freed)), "ms")
	s.r.Cure(ok, "with sorted locks, neither basket held what the other one waited for, and both got their locks")
	return nil
}

// waits returns as soon as so many wait for rice, or somebody has locked tea.
func waits(ctx context.Context, locks *redislock.Locker, n int) (grabbed bool, err error) {
	err = Await(ctx, "baskets that wait for rice", func() (bool, error) {
		rice, err := locks.Inspect(ctx, "rice")
		if err != nil {
			return false, nil //nolint:nilerr // a busy machine has kept Redis from answering in time
		}
		tea, err := locks.Inspect(ctx, "tea")
		if err != nil {
			return false, nil //nolint:nilerr // as above
		}
		grabbed = tea.Held
		return grabbed || rice.Waiters == n, nil
	})
	return grabbed, err
}
