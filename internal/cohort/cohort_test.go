package cohort_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

var errBad = errors.New("bad")

// Those who come while a batch is being committed are the next one, in the order of their
// arrival and under the same lease.
func TestOneLeaseServesBatches(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		first := r.do(r.Context(), 1)
		one := r.commit(1)
		rest := r.all(2, 3, 4)
		one.answer <- nil
		r.ended(first, nil)
		two := r.commit(2, 3, 4)
		if one.fence != two.fence || one.key != "a" {
			r.Errorf("fences %v and %v of %q", one.fence, two.fence, one.key)
		}
		two.answer <- nil
		for _, done := range rest {
			r.ended(done, nil)
		}
	})
}

// A batch has a bound, a lease has one in batches, and others have their turn then.
func TestBatchesAndLeasesAreBounded(t *testing.T) {
	bubble(t, config{MaxBatch: 2, MaxBatches: 2}, func(r *rig) {
		release := r.hold()
		r.all(1, 2, 3, 4, 5)
		release()
		one := r.commit(1, 2)
		other := make(chan func())
		go func() { other <- r.hold() }()
		synctest.Wait()
		one.answer <- nil
		r.commit(3, 4).answer <- nil
		release = <-other
		r.nobody()
		release()
		last := r.commit(5)
		if last.fence.Token <= one.fence.Token {
			r.Errorf("fence %v after %v", last.fence, one.fence)
		}
		last.answer <- nil
	})
}

func TestALeaseIsBoundedInTime(t *testing.T) {
	bubble(t, config{MaxHold: time.Second, MaxBatches: 100}, func(r *rig) {
		r.all(1)
		one := r.commit(1)
		r.all(2)
		time.Sleep(999 * time.Millisecond)
		one.answer <- nil
		two := r.commit(2)
		r.all(3)
		time.Sleep(2 * time.Millisecond)
		two.answer <- nil
		three := r.commit(3)
		if one.fence != two.fence || two.fence == three.fence {
			r.Errorf("fences %v, %v, %v; want two leases", one.fence, two.fence, three.fence)
		}
		three.answer <- nil
	})
}

// Keys do not wait for each other.
func TestKeysAreApart(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		r.all(1)
		one := r.commit(1)
		go func() { _ = r.group.Do(r.Context(), r.Context(), "b", 2) }()
		other := r.commit(2)
		if other.key != "b" {
			r.Error(other.key)
		}
		other.answer <- nil
		one.answer <- nil
	})
}

// Who gives up leaves the line, and when the last one does nobody stands in the queue for the
// lease any longer.
func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancelCause(r.Context())
		first, stays := r.do(ctx, 1), r.do(r.Context(), 2)
		giveUp(errBad)
		r.ended(first, errBad)
		r.waits(stays)
		release()
		r.commit(2).answer <- nil
		r.ended(stays, nil)

		release = r.hold()
		ctx, giveUp = context.WithCancelCause(r.Context())
		last := r.do(ctx, 3)
		if s, _ := r.lock.Inspect(ctx, "a"); s.Waiters != 1 {
			r.Errorf("%d wait for the lease", s.Waiters)
		}
		giveUp(errBad)
		r.ended(last, errBad)
		if s, _ := r.lock.Inspect(r.Context(), "a"); s.Waiters != 0 {
			r.Errorf("%d wait for the lease of nobody", s.Waiters)
		}
		again := r.do(r.Context(), 4)
		release()
		r.commit(4).answer <- nil
		r.ended(again, nil)
		r.ended(r.do(ctx, 5), errBad) // and does not join with a dead context
		r.nobody()
	})
}

// Many who give up leave nothing behind, though nobody is served.
func TestTheLineDoesNotGrowByThoseWhoLeft(t *testing.T) {
	bubble(t, config{MaxQueue: 10}, func(r *rig) {
		release := r.hold()
		stays := r.do(r.Context(), 0)
		for range 100 {
			ctx, giveUp := context.WithCancel(r.Context())
			done := r.do(ctx, 1)
			giveUp()
			r.ended(done, context.Canceled)
		}
		release()
		r.commit(0).answer <- nil
		r.ended(stays, nil)
	})
}

// A caller whose time is over leaves its batch, which is stopped when all callers have left.
func TestABatchOutlivesThoseWhoGiveUp(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancelCause(r.Context())
		impatient, waiting := context.WithCancelCause(r.Context())
		later, giveUpLater := context.WithCancelCause(r.Context())
		one, two, three, four := r.do(ctx, 1), r.do(ctx, 2), make(chan error, 1), make(chan error, 1)
		go func() { three <- r.group.Do(ctx, impatient, "a", 3) }()
		synctest.Wait()
		go func() { four <- r.group.Do(later, later, "a", 4) }()
		synctest.Wait()
		release()
		c := r.commit(1, 2, 3, 4)
		waiting(errBad) // which bounds the time in the line, and not that in a batch
		time.Sleep(time.Minute)
		r.waits(three)
		gone := errors.New("gone")
		giveUp(gone)
		time.Sleep(time.Second)
		for _, done := range []<-chan error{one, two, three} {
			err := <-done
			if !errors.Is(err, gone) || !errors.Is(err, cohort.ErrLeft) {
				r.Errorf("the answer is %v, want that it is unknown", err)
			}
		}
		if c.ctx.Err() != nil {
			r.Error("the work is stopped though somebody wants it")
		}
		r.waits(four)
		giveUpLater(gone)
		time.Sleep(time.Second)
		r.ended(four, cohort.ErrLeft)
		if !errors.Is(context.Cause(c.ctx), gone) {
			r.Errorf("the work goes on for nobody: %v", context.Cause(c.ctx))
		}
		c.answer <- errors.New("stopped")
	})
}

// A batch that ends with the time of its last caller still says what became of its items.
func TestAStoppedBatchStillAnswers(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		ctx, giveUp := context.WithCancelCause(r.Context())
		done := r.do(ctx, 1)
		c := r.commit(1)
		gone, stopped := errors.New("gone"), errors.New("stopped")
		giveUp(gone)
		<-c.ctx.Done()
		c.answer <- stopped
		err := <-done
		if !errors.Is(err, gone) || !errors.Is(err, stopped) || errors.Is(err, cohort.ErrLeft) {
			r.Errorf("the answer is %v", err)
		}
	})
}

// A caller whose time is over does not wait for the end of a long batch that others want. Its item stays in the batch.
func TestALongBatchKeepsNoCaller(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancelCause(r.Context())
		one, two := r.do(ctx, 1), r.do(r.Context(), 2)
		release()
		c := r.commit(1, 2)
		gone, began := errors.New("gone"), time.Now()
		giveUp(gone)
		err := <-one
		if d := time.Since(began); !errors.Is(err, cohort.ErrLeft) || !errors.Is(err, gone) || d > time.Second {
			r.Errorf("Do = %v after %v, want that the batch goes on", err, d)
		}
		r.waits(two)
		if c.ctx.Err() != nil {
			r.Error("the work is stopped though somebody wants it")
		}
		c.answer <- nil
		r.ended(two, nil)
	})
}

// Work that was done in time is done, though its caller has gone.
func TestSuccessIsReportedToThoseWhoGaveUp(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		ctx, giveUp := context.WithCancel(r.Context())
		done := r.do(ctx, 1)
		c := r.commit(1)
		giveUp()
		c.answer <- nil
		r.ended(done, nil)
	})
}

// One bad item fails alone.
func TestABatchIsSplitForTheSakeOfOneItem(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{"error", "panic"} {
		t.Run(failure, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { split(t, failure) })
		})
	}
}

func split(t *testing.T, failure string) {
	t.Helper()
	const n, bad = 100, 37
	lock := memlock.New(memlock.Config{})
	var calls atomic.Int64
	var mu sync.Mutex
	committed := make(map[int]int)
	group := cohort.New(config{
		Hold: over(lock),
		Commit: func(_ context.Context, _ string, _ dlock.Fence, items []int) error {
			calls.Add(1)
			switch {
			case slices.Contains(items, bad) && failure == "panic":
				panic(errBad)
			case slices.Contains(items, bad):
				return errBad
			}
			mu.Lock()
			defer mu.Unlock()
			for _, i := range items {
				committed[i]++
			}
			return nil
		},
	})
	lease, err := lock.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			err := group.Do(t.Context(), t.Context(), "a", i)
			if failed := err != nil && strings.Contains(err.Error(), "bad"); failed != (i == bad) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	synctest.Wait() // all stand in the line
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	if err := group.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if want := 1; i != bad && committed[i] != want || i == bad && committed[i] != 0 {
			t.Errorf("%d was committed %d times", i, committed[i])
		}
	}
	if most := int64(2*7 + 1); calls.Load() > most { // halves of halves of a hundred
		t.Errorf("%d calls of Commit, want %d at most", calls.Load(), most)
	}
}

// What is everybody's fault is not tried item by item.
func TestACommonErrorIsNotSplit(t *testing.T) {
	common := config{Common: func(err error) bool { return errors.Is(err, errBad) }}
	bubble(t, common, func(r *rig) {
		release := r.hold()
		done := r.all(1, 2, 3, 4)
		release()
		r.commit(1, 2, 3, 4).answer <- errBad
		for _, d := range done {
			r.ended(d, errBad)
		}
		r.nobody()
	})
}

// A batch whose fence is refused is tried under another lease, together with those who have come
// meanwhile, behind it.
func TestAFencedBatchIsRetried(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancelCause(r.Context())
		goes, stays := r.do(ctx, 1), r.all(2, 3)
		release()
		one := r.commit(1, 2, 3)
		later := r.do(r.Context(), 4)
		giveUp(errBad)
		one.answer <- dlock.ErrFenced
		two := r.commit(2, 3, 4)
		r.ended(goes, errBad)
		if two.fence.Token <= one.fence.Token {
			r.Errorf("fence %v after %v", two.fence, one.fence)
		}
		two.answer <- nil
		r.ended(later, nil)
		r.ended(stays[2], nil)
		r.ended(stays[3], nil)
	})
}

// Who gives up between two attempts hears what the first one left open.
func TestTheLastErrorIsToldToThoseWhoLeave(t *testing.T) {
	unknown := errors.New("unknown")
	bubble(t, config{Retry: func(err error) bool { return errors.Is(err, unknown) }}, func(r *rig) {
		ctx, giveUp := context.WithCancelCause(r.Context())
		done := r.do(ctx, 1)
		c := r.commit(1)
		var release func()
		held := make(chan struct{})
		go func() { release = r.hold(); close(held) }()
		synctest.Wait()
		c.answer <- unknown
		<-held
		r.waits(done)
		giveUp(errBad)
		r.ended(done, unknown)
		release()
	})
}

// Who would not wait for the line any longer waits for what became of an attempt, and no longer
// than there is time at all.
func TestTheImpatientHearWhatBecameOfThem(t *testing.T) {
	unknown := errors.New("unknown")
	is := func(err error) bool { return errors.Is(err, unknown) }
	bubble(t, config{Retry: is, Unknown: is}, func(r *rig) {
		waiting, over := context.WithCancelCause(r.Context())
		ctx, giveUp := context.WithCancelCause(r.Context())
		release := r.hold()
		done := make(map[int]<-chan error)
		for item, ctx := range []context.Context{r.Context(), ctx} {
			answer := make(chan error, 1)
			done[item] = answer
			go func() { answer <- r.group.Do(ctx, waiting, "a", item) }()
			synctest.Wait()
		}
		release()
		one := r.commit(0, 1)
		over(errBad)
		synctest.Wait()
		one.answer <- unknown
		two := r.commit(0, 1)
		giveUp(errBad)
		r.waits(done[1])
		two.answer <- unknown
		r.ended(done[1], unknown)
		r.commit(0).answer <- nil
		r.ended(done[0], nil)
	})
}

// It is the same when the time in the line ends after such an attempt.
func TestTheImpatientWaitInTheLine(t *testing.T) {
	unknown := errors.New("unknown")
	is := func(err error) bool { return errors.Is(err, unknown) }
	bubble(t, config{Retry: is, Unknown: is}, func(r *rig) {
		waiting, over := context.WithCancelCause(r.Context())
		done := make(chan error, 1)
		go func() { done <- r.group.Do(r.Context(), waiting, "a", 1) }()
		c := r.commit(1)
		var release func()
		held := make(chan struct{})
		go func() { release = r.hold(); close(held) }()
		synctest.Wait()
		c.answer <- unknown
		<-held
		over(errBad)
		r.waits(done)
		release()
		r.commit(1).answer <- nil
		r.ended(done, nil)
	})
}

// The loss of the lease ends the work, which is done again under another one.
func TestALostLeaseIsReplaced(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		done := r.do(r.Context(), 1)
		one := r.commit(1)
		if err := r.lock.ForceRelease(r.Context(), "a"); err != nil {
			r.Fatal(err)
		}
		<-one.ctx.Done()
		if !errors.Is(context.Cause(one.ctx), dlock.ErrLost) {
			r.Error(context.Cause(one.ctx))
		}
		one.answer <- errBad // whatever it is
		two := r.commit(1)
		if two.fence.Token <= one.fence.Token {
			r.Errorf("fence %v after %v", two.fence, one.fence)
		}
		two.answer <- nil
		r.ended(done, nil)
	})
}

// A lock service that is away is the answer to all who waited for it, and not to those who come
// later.
func TestALockServiceThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, calls: make(chan call)}
		answers := make(chan error)
		r.group = cohort.New(config{
			Hold: func(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
				if err := <-answers; err != nil {
					return err
				}
				return fn(ctx, dlock.Fence{Token: 1})
			},
			Commit: func(context.Context, string, dlock.Fence, []int) error { return nil },
		})
		before := r.do(t.Context(), 1)
		after := r.do(t.Context(), 2)
		answers <- errBad
		r.ended(before, errBad)
		r.waits(after)
		answers <- dlock.ErrLost // before anything was done: once more
		r.waits(after)
		time.Sleep(time.Minute)
		answers <- nil
		r.ended(after, nil)
		if err := r.group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAFullLineRefuses(t *testing.T) {
	bubble(t, config{MaxQueue: 2}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancel(r.Context())
		first, second := r.do(ctx, 1), r.do(r.Context(), 2)
		r.ended(r.do(r.Context(), 3), cohort.ErrFull)
		giveUp()
		r.ended(first, context.Canceled)
		third := r.do(r.Context(), 4)
		r.waits(third)
		release()
		r.commit(2, 4).answer <- nil
		r.ended(second, nil)
		r.ended(third, nil)
	})
}

// A look refuses those who were there before it, one by one, without a lease, and never those
// whose fate an attempt has left open.
func TestRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks, verdict := make(chan struct{}), make(chan func(int) error)
		r := newRig(t, config{Refuse: func(context.Context, string) func(int) error {
			looks <- struct{}{}
			return <-verdict
		}})
		odd := func(i int) error {
			if i%2 == 1 {
				return errBad
			}
			return nil
		}
		release := r.hold()
		before := r.do(t.Context(), 1)
		<-looks
		after := r.all(2, 5)
		verdict <- odd
		r.ended(before, errBad)
		r.waits(after[5])
		later := r.do(t.Context(), 3)
		release()
		c := r.commit(2, 5, 3)
		c.answer <- dlock.ErrFenced
		<-looks
		verdict <- odd
		r.waits(later) // though it is odd, and was there
		c = r.commit(2, 5, 3)
		third := r.do(t.Context(), 7)
		c.answer <- nil
		r.ended(after[2], nil)
		r.ended(after[5], nil)
		r.ended(later, nil)
		<-looks // before the second batch of a lease as well
		verdict <- odd
		r.ended(third, errBad)
		alone := r.all(9)
		<-looks
		release = r.hold()
		verdict <- odd
		r.ended(alone[9], errBad) // though somebody else has the lease
		release()
		if err := r.group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Whatever happens, an item is committed exactly if its caller hears so, once, in an order
// that the fences confirm.
func TestEveryAnswerIsTrue(t *testing.T) {
	t.Parallel()
	lock := memlock.New(memlock.Config{})
	var mu sync.Mutex
	committed, latest := make(map[int]int), uint64(0)
	newGroup := func() *group {
		return cohort.New(config{
			Hold: over(lock), MaxBatch: 7, MaxBatches: 3, MaxQueue: 40,
			Commit: func(ctx context.Context, _ string, f dlock.Fence, items []int) error {
				mu.Lock()
				defer mu.Unlock()
				before, n := latest, rand.N(20)
				switch {
				case f.Token < latest:
					return dlock.ErrFenced
				case ctx.Err() != nil:
					return context.Cause(ctx)
				}
				latest = f.Token
				if n%4 == 0 {
					time.Sleep(100 * time.Microsecond) // with what keeps others out
				}
				switch n {
				case 0, 1:
					latest = before
					return dlock.ErrFenced
				case 2, 3:
					latest = before
					return errBad
				}
				for _, i := range items {
					committed[i]++
				}
				return nil
			},
		})
	}
	groups := []*group{newGroup(), newGroup(), newGroup()}
	var callers sync.WaitGroup
	told, unknown := make([]bool, 3000), make([]bool, 3000)
	for i := range 60 {
		callers.Go(func() {
			for n := i; n < len(told); n += 60 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(3*time.Millisecond))
				if n%3 == 0 {
					ctx = t.Context()
				}
				err := groups[n%3].Do(ctx, ctx, "a", n)
				cancel()
				told[n], unknown[n] = err == nil, errors.Is(err, cohort.ErrLeft)
			}
		})
	}
	callers.Wait()
	for _, g := range groups {
		if err := g.Wait(t.Context()); err != nil { // the batches of those who left end later
			t.Error(err)
		}
	}
	done := 0
	for i, ok := range told {
		if ok {
			done++
		}
		if want := map[bool]int{true: 1}[ok]; committed[i] != want && (!unknown[i] || committed[i] > 1) {
			t.Errorf("%d: told %v, committed %d times", i, ok, committed[i])
		}
	}
	if done < len(told)/10 {
		t.Errorf("only %d of %d were served", done, len(told))
	}
}

// Three instances that all have more to do than they can get an equal number of leases, from a
// lock service that is first come, first served, however much each of them has to do.
func TestThreeInstancesHaveTheirTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := memlock.New(memlock.Config{})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var mu sync.Mutex
		leases := make([]map[uint64]int, 3) // by fence: items
		var callers sync.WaitGroup
		var groups []*group
		for i := range 3 {
			leases[i] = make(map[uint64]int)
			group := cohort.New(config{
				Hold: over(lock), MaxBatch: 10,
				Commit: func(_ context.Context, _ string, f dlock.Fence, items []int) error {
					time.Sleep(3 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					leases[i][f.Token] += len(items)
					return nil
				},
			})
			groups = append(groups, group)
			for range 200 >> i {
				callers.Go(func() {
					for ctx.Err() == nil {
						if err := group.Do(ctx, ctx, "a", 0); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
				})
			}
		}
		callers.Wait()
		most, least := 0, 1<<30
		for i, g := range groups {
			if err := g.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			most, least = max(most, len(leases[i])), min(least, len(leases[i]))
		}
		t.Logf("%d leases at most, %d at least", most, least)
		if 5*most > 6*least || least < 100 {
			t.Errorf("the instances had between %d and %d leases, more than a fifth apart", least, most)
		}
	})
}
