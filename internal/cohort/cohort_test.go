package cohort_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

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

// Under every fault, an item is committed once if Do reports its commit, and never otherwise. The fences confirm the
// order of the commits.
// flakyStore counts how often each item was committed. It refuses old tokens, and some batches by chance.
type flakyStore struct {
	mu        sync.Mutex
	committed map[int]int
	latest    uint64 // the greatest token
}

func (r *flakyStore) commit(ctx context.Context, _ string, f dlock.Fence, items []int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, n := r.latest, rand.N(20)
	switch {
	case f.Token < r.latest:
		return dlock.ErrFenced
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	r.latest = f.Token
	if n%4 == 0 {
		time.Sleep(100 * time.Microsecond) // with what keeps others out
	}
	switch n {
	case 0, 1:
		r.latest = before
		return dlock.ErrFenced
	case 2, 3:
		r.latest = before
		return errBad
	}
	for _, i := range items {
		r.committed[i]++
	}
	return nil
}

func TestEveryAnswerIsTrue(t *testing.T) {
	t.Parallel()
	lock := memlock.New(memlock.Config{})
	store := &flakyStore{committed: make(map[int]int)}
	newGroup := func() *group {
		return cohort.New(config{
			Hold: over(lock), MaxBatch: 7, MaxBatches: 3, MaxQueue: 40,
			Commit: store.commit,
		})
	}
	groups := []*group{newGroup(), newGroup(), newGroup()}
	var callers sync.WaitGroup
	succeeded, unknown := make([]bool, 3000), make([]bool, 3000)
	for i := range 60 {
		callers.Go(func() {
			for n := i; n < len(succeeded); n += 60 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(3*time.Millisecond))
				if n%3 == 0 {
					ctx = t.Context()
				}
				err := groups[n%3].Do(ctx, ctx, "a", n)
				cancel()
				succeeded[n], unknown[n] = err == nil, errors.Is(err, cohort.ErrLeft)
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
	for i, ok := range succeeded {
		if ok {
			done++
		}
		if want := map[bool]int{true: 1}[ok]; store.committed[i] != want && (!unknown[i] || store.committed[i] > 1) {
			t.Errorf("%d: succeeded %v, committed %d times", i, ok, store.committed[i])
		}
	}
	if done < len(succeeded)/10 {
		t.Errorf("only %d of %d were served", done, len(succeeded))
	}
}
