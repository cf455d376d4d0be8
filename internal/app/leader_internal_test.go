package app

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/memcluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

// candidate is one that can be elected.
func candidate(t *testing.T) *leadership {
	t.Helper()
	l := newLeadership("test", slog.New(slog.DiscardHandler))
	var err error
	l.election, err = cluster.NewElection(cluster.ElectionConfig{
		Locker: memlock.New(memlock.Config{}), Registry: new(memcluster.Cluster), Name: "test", Pause: time.Millisecond, OnError: l.trouble,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// elect makes l lead until the test ends.
func elect(t *testing.T, l *leadership) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for leads := false; !leads; {
		leads, _ = l.during(t.Context(), func(context.Context, *cluster.Term) error { return nil })
		if t.Context().Err() != nil {
			t.Fatal("not elected")
		}
	}
}

// A leader has each key once, until its term ends. A leader that releases a key has resigned.
func TestKeysOfALeader(t *testing.T) {
	t.Parallel()
	l := candidate(t)
	if _, err := l.TryAcquire(t.Context(), "a"); !errors.Is(err, dlock.ErrHeld) {
		t.Errorf("before the election: %v", err)
	}
	elect(t, l)
	a, err := l.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.TryAcquire(t.Context(), "a"); !errors.Is(err, dlock.ErrHeld) {
		t.Errorf("a key that is taken: %v", err)
	}
	b, err := l.Acquire(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if a.Fence().Token != b.Fence().Token || a.Fence() == b.Fence() {
		t.Errorf("fences of one term: %+v, %+v", a.Fence(), b.Fence())
	}
	if err := a.Release(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case <-b.Done():
	case <-time.After(time.Minute):
		t.Fatal("a key outlives the term")
	}
	if !errors.Is(b.Err(), dlock.ErrLost) {
		t.Errorf("the other key: %v", b.Err())
	}
	again, err := l.Acquire(t.Context(), "a") // it is the only candidate
	if err != nil {
		t.Fatal(err)
	}
	if again.Fence().Token <= a.Fence().Token {
		t.Errorf("the next term has fence %d after %d", again.Fence().Token, a.Fence().Token)
	}
	if err := again.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A key that is lost while the term continues can be had again: its work would are paused otherwise.
func TestLostKeyOfALeader(t *testing.T) {
	t.Parallel()
	l := candidate(t)
	elect(t, l)
	first, err := l.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	l.renewer.Lose(first.Fence().Owner, dlock.ErrLost)
	if err := first.Release(t.Context()); !errors.Is(err, dlock.ErrLost) {
		t.Errorf("the release of a key that is lost: %v", err)
	}
	second, err := l.Acquire(t.Context(), "a") // which waits until the loss has been noted
	if err != nil {
		t.Fatal(err)
	}
	if first.Fence() != second.Fence() {
		t.Errorf("fences of one term: %+v, %+v", first.Fence(), second.Fence())
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// While nobody can be elected the keys are not free, and not held either.
func TestFailedElectionGrantsNoKey(t *testing.T) {
	t.Parallel()
	l := candidate(t)
	away := errors.New("the lock service is unavailable")
	l.trouble(away)
	if _, err := l.TryAcquire(t.Context(), "a"); !errors.Is(err, away) || errors.Is(err, dlock.ErrHeld) {
		t.Errorf("in trouble: %v", err)
	}
	elect(t, l)
	if _, err := l.Acquire(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// The loss of a key is not that of the grant which comes next in the same term.
func TestLossEndsOneGrantOnly(t *testing.T) {
	t.Parallel()
	l := candidate(t)
	elect(t, l)
	for range 2_000 {
		lease, err := l.TryAcquire(t.Context(), "a")
		for errors.Is(err, dlock.ErrHeld) { // the loss has not been noted yet
			runtime.Gosched()
			lease, err = l.TryAcquire(t.Context(), "a")
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // what is late of the loss before has its chance
			runtime.Gosched()
		}
		if err := lease.Err(); err != nil {
			t.Fatalf("a grant that nobody has ended: %v", err)
		}
		l.renewer.Lose(lease.Fence().Owner, dlock.ErrLost)
	}
}
