package dlocktest

import (
	"context"
	"sync"
	"testing"

	"example.com/shop/internal/dlock"
)

// blockingOnEnd has a callback that does not return, of a lease that was lost, and of one
// that was taken from its holder. The client has other things to do.
func blockingOnEnd(ctx context.Context, t testing.TB, h Harness, key string) {
	l, other := h.New(t), h.New(t)
	mine := h.side(l)
	blocked := make(chan struct{})
	end := sync.OnceFunc(func() { close(blocked) })
	defer end()
	stuck := func(key string, take func()) {
		called := make(chan struct{})
		acquire(ctx, t, h, mine, key).OnEnd(func(error) {
			close(called)
			<-blocked
		})
		take()
		within(t, called, 2*h.TTL, "OnEnd is not called")
	}
	if force, ok := own(other).(dlock.ForceReleaser); ok {
		stuck(key+"-forced", func() { wantErr(t, force.ForceRelease(ctx, key+"-forced"), nil) })
	}
	stuck(key+"-lost", func() { h.Expire(t, key+"-lost") })

	kept, lost := acquire(ctx, t, h, mine, key+"-kept"), acquire(ctx, t, h, mine, key+"-second")
	h.Expire(t, key+"-second")
	waitDone(t, lost, 2*h.TTL)
	release(ctx, t, acquire(ctx, t, h, mine, key+"-free"))
	if h.FallbackPoll > 0 {
		fastest := h.FallbackPoll
		for range 5 {
			fastest = min(fastest, handOff(ctx, t, h, other, mine, key))
		}
		if fastest > h.FallbackPoll/4 {
			t.Errorf("a hand-off takes %v, while a waiter polls by itself every %v", fastest, h.FallbackPoll)
		}
	}
	pause(ctx, h.TTL)
	wantErr(t, kept.Err(), nil)
	release(ctx, t, kept)

	closer, ok := own(l).(closer)
	if !ok {
		return
	}
	short, cancel := context.WithTimeout(ctx, h.TTL)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = closer.Close(short) // it may wait for the callbacks, for as long as it has time
	}()
	within(t, closed, 3*h.TTL, "Close has no end, while its context has")
}

// closer is a client that can be closed.
type closer interface {
	Close(ctx context.Context) error
}

// closeInsideOnEnd closes the client when its lease was lost.
func closeInsideOnEnd(ctx context.Context, t testing.TB, h Harness, key string) {
	l := h.New(t)
	closer := optional[closer](t, l)
	closed := make(chan error, 1)
	acquire(ctx, t, h, h.side(l), key).OnEnd(func(error) {
		bounded, cancel := context.WithTimeout(ctx, 5*h.TTL)
		defer cancel()
		closed <- closer.Close(bounded)
	})
	if force, ok := own(h.New(t)).(dlock.ForceReleaser); ok {
		wantErr(t, force.ForceRelease(ctx, key), nil)
	} else {
		h.Expire(t, key)
	}
	wantErr(t, within(t, closed, 6*h.TTL, "Close does not return"), nil)
}
