package permits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// leaseless is a store that refuses leases.
type leaseless struct{ Store }

var errRefused = errors.New("no leases")

func (leaseless) Resize(context.Context, int) error { return nil }

func (leaseless) Renew(context.Context, Renewal) (Division, error) { return Division{}, errRefused }

// An instance that gets no lease does not start: without one it would not know its share.
func TestStartNeedsALease(t *testing.T) {
	t.Parallel()
	l, err := New(leaseless{}, Config{Permits: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(t.Context()); !errors.Is(err, errRefused) {
		t.Errorf("%v, want %v", err, errRefused)
	}
}

// A permit that is free when the wait ends is taken, although no answer of the store has come.
func TestTakeAtTheEndOfItsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, err := New(struct{ Store }{}, Config{Permits: 1}) // nothing calls the store
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			synctest.Wait() // until Take waits
			l.mu.Lock()
			defer l.mu.Unlock()
			l.capacity = 1
		}()
		if _, err := l.Take(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
