package cohort_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

var errBad = errors.New("bad")

type (
	config = cohort.Config[string, dlock.Fence, int]
	group  = cohort.Group[string, dlock.Fence, int]
)

// call is one call of Commit.
type call struct {
	key    string
	fence  dlock.Fence
	items  []int
	ctx    context.Context //nolint:containedctx // The test reads it.
	answer chan error
}

// rig is a Group whose commits are answered by the test. It is to be used in a bubble.
type rig struct {
	*testing.T
	lock  *memlock.Locker
	group *group
	calls chan call
}

// newRig returns a rig whose Group is configured by cfg, and by what it needs itself.
func newRig(t *testing.T, cfg config) *rig {
	t.Helper()
	r := &rig{T: t, lock: memlock.New(memlock.Config{}), calls: make(chan call)}
	cfg.Hold = over(r.lock)
	cfg.Commit = func(ctx context.Context, key string, f dlock.Fence, items []int) error {
		c := call{key, f, slices.Clone(items), ctx, make(chan error)}
		r.calls <- c
		return <-c.answer
	}
	r.group = cohort.New(cfg)
	return r
}

// over returns the Hold of a Locker.
func over(l dlock.Locker) func(ctx context.Context, key string, fn func(ctx context.Context, f dlock.Fence) error) error {
	return func(ctx context.Context, key string, fn func(ctx context.Context, f dlock.Fence) error) error {
		return dlock.Do(ctx, l, key, fn)
	}
}

// bubble runs f in a bubble of its own, in which time passes when everybody waits.
func bubble(t *testing.T, cfg config, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cfg)
		f(r)
		if err := r.group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if s, _ := r.lock.Inspect(t.Context(), "a"); s.Held || s.Waiters > 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// do has item served, and returns where its error will be. The item has its place when do returns.
func (r *rig) do(ctx context.Context, item int) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.group.Do(ctx, ctx, "a", item) }()
	synctest.Wait()
	return done
}

// all is do for several items.
func (r *rig) all(items ...int) map[int]<-chan error {
	done := make(map[int]<-chan error)
	for _, item := range items {
		done[item] = r.do(r.Context(), item)
	}
	return done
}

// waiting returns how many wait for a key.
func (r *rig) waiting(key string) int {
	return r.group.Waiting(func(k string) bool { return k == key })
}

// commit waits for a call of Commit with items.
func (r *rig) commit(items ...int) call {
	r.Helper()
	c := <-r.calls
	if !slices.Equal(c.items, items) {
		r.Errorf("a batch of %v, want %v", c.items, items)
	}
	return c
}

// nobody fails if Commit was called.
func (r *rig) nobody() {
	r.Helper()
	synctest.Wait()
	select {
	case c := <-r.calls:
		r.Fatalf("%v are being committed", c.items)
	default:
	}
}

// ended fails unless done has an error that matches want.
func (r *rig) ended(done <-chan error, want error) {
	r.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if !errors.Is(err, want) || want == nil && err != nil {
			r.Errorf("the answer is %v, want %v", err, want)
		}
	default:
		r.Errorf("no answer, want %v", want)
	}
}

// waits fails if done has an answer.
func (r *rig) waits(done <-chan error) {
	r.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		r.Errorf("answered with %v too early", err)
	default:
	}
}

// hold takes the key from outside.
func (r *rig) hold() (release func()) {
	r.Helper()
	lease, err := r.lock.Acquire(r.Context(), "a")
	if err != nil {
		r.Fatal(err)
	}
	return func() {
		if err := lease.Release(r.Context()); err != nil {
			r.Error(err)
		}
	}
}
