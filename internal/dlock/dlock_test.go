package dlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
)

func TestFencePasses(t *testing.T) {
	last := dlock.Fence{Token: 7, Owner: "a"}
	for name, c := range map[string]struct {
		fence dlock.Fence
		want  bool
	}{
		"newer":                          {dlock.Fence{Token: 8, Owner: "b"}, true},
		"same again":                     {dlock.Fence{Token: 7, Owner: "a"}, true},
		"older":                          {dlock.Fence{Token: 6, Owner: "a"}, false},
		"issued twice by a failed store": {dlock.Fence{Token: 7, Owner: "b"}, false},
	} {
		if got := c.fence.Passes(last); got != c.want {
			t.Errorf("%s: Passes = %v, want %v", name, got, c.want)
		}
	}
	if !last.Passes(dlock.Fence{}) {
		t.Error("the first fence of a resource is refused")
	}
}

// one is a Locker that has one answer.
type one struct {
	lease *dlock.Lease
	err   error
}

func (l one) Acquire(context.Context, string) (*dlock.Lease, error)    { return l.lease, l.err }
func (l one) TryAcquire(context.Context, string) (*dlock.Lease, error) { return l.lease, l.err }

func TestDoReturnsWhatAcquireReturned(t *testing.T) {
	err := dlock.Do(t.Context(), one{err: dlock.ErrUncertain}, "k", func(context.Context, dlock.Fence) error {
		t.Error("fn runs without a lease")
		return nil
	})
	if !errors.Is(err, dlock.ErrUncertain) {
		t.Errorf("Do = %v, want ErrUncertain", err)
	}
}

func TestDoDoesNotStartOnALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := grant(ok)
		time.Sleep(ttl)
		err := dlock.Do(t.Context(), one{lease: dlock.NewLease(t.Context(), g)}, "k", func(context.Context, dlock.Fence) error {
			t.Error("fn runs under a lost lease")
			return nil
		})
		wantReason(t, err, dlock.Expired)
	})
}

// A failed release does not fail work that is done. If the work failed, the release shows whether it had a lease.
func TestDoAndAReleaseThatFails(t *testing.T) {
	taken, failed := &dlock.LostError{Reason: dlock.Taken}, errors.New("sold out")
	for name, c := range map[string]struct {
		release, fn error
		want        []error
		notWant     error
	}{
		"done, lost":         {release: taken},
		"done, no answer":    {release: errStore},
		"failed, lost":       {release: taken, fn: failed, want: []error{failed, dlock.ErrLost}},
		"failed, no answer":  {release: errStore, fn: failed, want: []error{failed}, notWant: errStore},
		"failed as lost":     {release: taken, fn: dlock.ErrLost, want: []error{dlock.ErrLost}},
		"failed, released":   {fn: failed, want: []error{failed}, notWant: dlock.ErrLost},
		"fenced, then taken": {release: taken, fn: dlock.ErrFenced, want: []error{dlock.ErrFenced, dlock.ErrLost}},
	} {
		t.Run(name, func(t *testing.T) {
			g := grant(ok)
			g.Release = func(context.Context) error { return c.release }
			err := dlock.Do(t.Context(), one{lease: dlock.NewLease(t.Context(), g)}, "k",
				func(context.Context, dlock.Fence) error { return c.fn })
			if c.want == nil && err != nil {
				t.Errorf("Do = %v, want nil", err)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("Do = %v, want %v", err, want)
				}
			}
			if c.notWant != nil && errors.Is(err, c.notWant) {
				t.Errorf("Do = %v, want no %v", err, c.notWant)
			}
		})
	}
}
