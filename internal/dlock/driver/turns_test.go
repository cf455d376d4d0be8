package driver_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// Turns are granted in the order of the calls, each with a higher token. A grant has no more turns than tokens.
func TestTurnsAreInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		first := b.hold(t)
		var (
			waiters sync.WaitGroup
			order   []int
			tokens  = []uint64{first.Fence().Token}
		)
		const all = 3*driver.TurnsPerGrant - 1
		for i := range all {
			waiters.Go(func() {
				lease, err := b.acquire(t.Context())
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

// Callers that give up are passed over, and the last one takes the acquisition along.
func TestCancelledCallersGetNoTurn(t *testing.T) {
	for _, unshared := range []bool{false, true} {
		bubble(t, func(t *testing.T, b *bank) {
			b.unshared = unshared
			first := b.hold(t)
			reason := errors.New("shutting down")
			ctx, cancel := context.WithCancelCause(t.Context())
			var waiters sync.WaitGroup
			for range 5 {
				waiters.Go(func() {
					if _, err := b.acquire(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
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
}

// The place in the store is that of all waiters: it stays when the one that began the acquisition gives up.
func TestPlaceOutlivesItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		<-b.free // another process holds the key
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := b.acquire(ctx)
			failed <- err
		}()
		time.Sleep(time.Minute)
		next := make(chan *dlock.Lease)
		go func() { next <- b.hold(t) }()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire = %v", err)
		}
		b.free <- struct{}{}
		began := time.Now()
		giveBack(t, <-next)
		if d := time.Since(began); d > 0 || b.grants != 1 {
			t.Errorf("%d grants, the second caller waited %v more: it has asked anew", b.grants, d)
		}
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
				if _, err := b.acquire(t.Context()); !errors.Is(err, errAway) || time.Since(start) > time.Second {
					t.Errorf("Acquire = %v after %v", err, time.Since(start))
				}
			})
		}
		waiters.Wait()
		b.set(nil, false)
		giveBack(t, b.hold(t))
	})
}

// The end of a caller's time during its first request is its own affair.
func TestFirstCallerFailsAlone(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		for _, ctx := range []context.Context{ctx, passed{t.Context()}} {
			b.set(errAway, false)
			failed := make(chan error, 1)
			go func() {
				_, err := b.acquire(ctx)
				failed <- err
			}()
			synctest.Wait()
			next := make(chan *dlock.Lease)
			go func() { next <- b.hold(t) }()
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

// A panic is one of the caller that is first. The others get an error, and nobody is left waiting.
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
				if _, err := b.acquire(t.Context()); err == nil {
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

// A caller that leaves at the moment of its grant releases it. If the outcome of that is unknown, it says so.
func TestUncertainReleaseByACallerThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.unheard = errAway
		keep := func() {}
		b.renewer = keeper(func() { keep() })
		first := b.hold(t)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := b.acquire(ctx)
			failed <- err
		}()
		synctest.Wait()
		keep = func() { cancel(); synctest.Wait() }
		giveBack(t, first)
		if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("Acquire = %v, want %v", err, dlock.ErrUncertain)
		}
	})
}

// keeper is called when a grant is made.
type keeper func()

func (k keeper) Keep(context.Context, *dlock.Hold) bool {
	k()
	return true
}

func (keeper) Forget(*dlock.Hold) <-chan struct{} { return nil }

// The store may grant the key when the last caller has left. That caller learns if the outcome of the release is unknown.
func TestUncertainReleaseOfAGrantThatNobodyWants(t *testing.T) {
	bubble(t, func(t *testing.T, b *bank) {
		b.unheard = errAway
		ctx, cancel := context.WithCancel(t.Context())
		_, err := b.Acquire(ctx, "k", func(context.Context, *driver.Share) (*dlock.Lease, driver.Wait, error) {
			return nil, func(ctx context.Context) (*dlock.Lease, error) {
				cancel()
				<-ctx.Done()
				<-b.free
				return b.grant(ctx, nil), nil
			}, nil
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("Acquire = %v, want %v", err, dlock.ErrUncertain)
		}
	})
}
