package share_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/share"
)

// bank is a store with one key, which takes a second to answer.
type bank struct {
	*share.Locker

	free    chan struct{} // has an element while nobody holds the key
	unheard error         // of each release, which the store has done

	mu      sync.Mutex
	failing error
	panics  bool
	grants  int
	asking  int // callers of the store at this moment
	most    int // of them at any moment
}

// set makes the store fail, or panic, or work again.
func (b *bank) set(failing error, panics bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing, b.panics = failing, panics
}

// store is the bank without turns.
type store struct{ *bank }

// TryAcquire implements [dlock.Locker].
func (s store) TryAcquire(context.Context, string) (*dlock.Lease, error) { return nil, dlock.ErrHeld }

// Acquire implements [dlock.Locker].
func (s store) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	s.mu.Lock()
	s.asking++
	s.most = max(s.most, s.asking)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	s.asking--
	failing, panics := s.failing, s.panics
	s.mu.Unlock()
	switch {
	case panics:
		panic("in the store")
	case failing != nil:
		return nil, failing
	}
	select {
	case <-s.free:
	case <-ctx.Done():
		return nil, dlock.Ended(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants++
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: dlock.Fence{Token: uint64(s.grants), Owner: "o"}, Sent: time.Now(), TTL: time.Hour,
		Release: func(context.Context) error { s.free <- struct{}{}; return s.unheard },
	}), nil
}

// bubble runs f on fake time with a new store, which is free again at the end.
func bubble(t *testing.T, f func(t *testing.T, b *bank)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bank{free: make(chan struct{}, 1)}
		b.free <- struct{}{}
		b.Locker = share.New(store{b})
		f(t, b)
		synctest.Wait()
		if len(b.free) != 1 {
			t.Error("the key is held at the end")
		}
	})
}

func (b *bank) hold(t *testing.T) *dlock.Lease {
	t.Helper()
	lease, err := b.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func giveBack(t *testing.T, l *dlock.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

var errAway = errors.New("the store is away")

// Turns are granted in the order of the calls, each with a higher token. A grant has no more turns than tokens.
func TestTurnsAreInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		var (
			waiters sync.WaitGroup
			order   []int
			tokens  = []uint64{first.Fence().Token}
		)
		const all = 3*share.Turns - 1
		for i := range all {
			waiters.Go(func() {
				lease, err := b.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				order, tokens = append(order, i), append(tokens, lease.Fence().Token)
				giveBack(t, lease)
			})
			synctest.Wait()
		}
		giveBack(t, first)
		waiters.Wait()
		if len(order) != all || !slices.IsSorted(order) {
			t.Errorf("turns in the order %v", order)
		}
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Errorf("tokens %v", tokens)
			}
		}
		if b.grants != 3 {
			t.Errorf("%d grants for %d turns, want 3", b.grants, all+1)
		}
	})
}

// The process asks for the next grant when the last turn of the present one begins, and when its time of sharing is over.
func TestProcessQueuesDuringTheLastTurn(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		time.Sleep(time.Minute)
		start := time.Now()
		giveBack(t, first)
		giveBack(t, <-next)
		if d := time.Since(start); d > 0 {
			t.Errorf("the waiter asked the store %v late", d)
		}
	})
}

// Of the callers that wait for a key, one asks the store.
func TestOneCallerAsksTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		var callers sync.WaitGroup
		for range 3 * share.Turns {
			callers.Go(func() { giveBack(t, b.hold(t)) })
		}
		callers.Wait()
		if b.most != 1 {
			t.Errorf("%d callers asked the store at once, want 1", b.most)
		}
	})
}

// A caller that arrives when a grant is old gets no turn, even if the grant is released at this moment.
func TestOldGrantHasNoTurns(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		time.Sleep(time.Minute)
		lease, err := b.Acquire(arriving{t.Context(), sync.OnceFunc(func() { giveBack(t, first) })}, "k")
		if err != nil {
			t.Fatal(err)
		}
		giveBack(t, lease)
		if b.grants != 2 {
			t.Errorf("%d grants, want 2", b.grants)
		}
	})
}

// arriving is the context of a caller that has begun to wait when f is called.
type arriving struct {
	context.Context //nolint:containedctx // It is one.

	f func()
}

// Done implements [context.Context].
func (a arriving) Done() <-chan struct{} {
	a.f()
	return a.Context.Done()
}

// A caller that leaves at the moment of its turn releases it. If the outcome of that is unknown, it says so.
func TestUncertainReleaseByACallerThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.unheard = errAway
		for err := error(nil); err == nil; { // it may take the lease
			first := b.hold(t)
			ctx, cancel := context.WithCancel(t.Context())
			var lease *dlock.Lease
			lease, err = b.Acquire(arriving{ctx, sync.OnceFunc(func() { giveBack(t, first); cancel() })}, "k")
			switch {
			case err == nil:
				_ = lease.Release(ctx) // its outcome is unknown
			case !errors.Is(err, context.Canceled) || !errors.Is(err, dlock.ErrUncertain):
				t.Errorf("Acquire = %v, want %v", err, dlock.ErrUncertain)
			}
		}
	})
}

// Callers that give up are passed over, and get the cause of their context.
func TestCancelledCallersGetNoTurn(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		reason := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		var waiters sync.WaitGroup
		for range 5 {
			waiters.Go(func() {
				if _, err := b.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
					t.Errorf("Acquire = %v, want the end of the context and its cause", err)
				}
			})
		}
		time.Sleep(time.Minute)
		cancel(reason)
		waiters.Wait()
		giveBack(t, first)
		if b.grants != 1 {
			t.Errorf("%d grants, want 1", b.grants)
		}
		giveBack(t, b.hold(t))
	})
}

// All waiters of an acquisition that fails get its error. Later callers do not.
func TestWaitersShareAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.set(errAway, false)
		var waiters sync.WaitGroup
		for range 5 {
			waiters.Go(func() {
				start := time.Now()
				if _, err := b.Acquire(t.Context(), "k"); !errors.Is(err, errAway) || time.Since(start) > time.Second {
					t.Errorf("Acquire = %v after %v", err, time.Since(start))
				}
			})
		}
		waiters.Wait()
		b.set(nil, false)
		giveBack(t, b.hold(t))
	})
}

// The end of a caller's time during its acquisition is its own affair: the next one asks the store.
func TestCallerFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		for _, ctx := range []context.Context{ctx, passed{t.Context()}} {
			b.set(errAway, false)
			failed := make(chan error, 1)
			go func() {
				_, err := b.Acquire(ctx, "k")
				failed <- err
			}()
			synctest.Wait()
			next := make(chan *dlock.Lease)
			go func() { next <- b.hold(t) }()
			synctest.Wait()
			time.Sleep(time.Second)
			if err := <-failed; !errors.Is(err, errAway) {
				t.Errorf("Acquire = %v", err)
			}
			b.set(nil, false)
			giveBack(t, <-next)
		}
	})
}

// passed is a context whose deadline a client of the store has noticed first.
type passed struct{ context.Context } //nolint:containedctx // It is one.

func (passed) Deadline() (time.Time, bool) { return time.Now(), true }

// A panic is one of the caller that acquires. The others get an error, and nobody is left waiting.
func TestPanicOfAnAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.set(nil, true)
		var (
			waiters sync.WaitGroup
			mu      sync.Mutex
			panics  int
		)
		for range 5 {
			waiters.Go(func() {
				defer func() {
					if recover() != nil {
						mu.Lock()
						defer mu.Unlock()
						panics++
					}
				}()
				if _, err := b.Acquire(t.Context(), "k"); err == nil {
					t.Error("a lease of nothing")
				}
			})
			synctest.Wait()
		}
		waiters.Wait()
		if panics != 1 {
			t.Errorf("%d callers panicked, want 1", panics)
		}
		b.set(nil, false)
		giveBack(t, b.hold(t))
	})
}

// The release of a turn returns the loss that the store reports.
func TestReleaseReportsALoss(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.unheard = &dlock.LostError{Reason: dlock.Taken}
		first := b.hold(t)
		if err := first.Release(t.Context()); !errors.Is(err, dlock.ErrLost) {
			t.Errorf("Release = %v, want the loss that the store reported", err)
		}
	})
}
