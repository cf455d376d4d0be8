package cohort_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

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

// An error that is common to all items is not split: they are not tried one by one.
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
