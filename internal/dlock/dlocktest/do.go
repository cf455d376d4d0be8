package dlocktest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

func doCancelsOnLoss(ctx context.Context, t testing.TB, h Harness, key string) {
	err := dlock.Do(ctx, h.New(t), key, func(ctx context.Context, _ dlock.Fence) error {
		h.Expire(t, key)
		select {
		case <-ctx.Done():
		case <-time.After(2 * h.TTL):
			t.Error("the work continues")
		}
		return ctx.Err() // says nothing about the lease
	})
	wantErr(t, err, dlock.ErrLost)
	wantErr(t, err, context.Canceled)
}

func doKeepsASuccess(ctx context.Context, t testing.TB, h Harness, key string) {
	err := dlock.Do(ctx, h.New(t), key, func(context.Context, dlock.Fence) error {
		h.Expire(t, key)
		return nil // the work is done, and must not be done again
	})
	wantErr(t, err, nil)

	sold := errors.New("sold out")
	err = dlock.Do(ctx, h.New(t), key, func(context.Context, dlock.Fence) error { return sold })
	wantErr(t, err, sold)
	if errors.Is(err, dlock.ErrLost) {
		t.Errorf("error = %v, but the lease was not lost", err)
	}
}

func doReleasesAfterCancel(ctx context.Context, t testing.TB, h Harness, key string) {
	work, cancel := context.WithCancel(ctx)
	err := dlock.Do(work, h.New(t), key, func(ctx context.Context, _ dlock.Fence) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	wantErr(t, err, context.Canceled)
	if errors.Is(err, dlock.ErrLost) {
		t.Errorf("error = %v, but the lease was not lost", err)
	}
	wantFree(ctx, t, h, key)
}

func doReleasesOnPanic(ctx context.Context, t testing.TB, h Harness, key string) {
	l := h.New(t)
	do := func(f func()) {
		defer func() { recover() }()
		err := dlock.Do(ctx, l, key, func(context.Context, dlock.Fence) error { f(); return nil })
		t.Errorf("Do returned %v", err)
	}
	do(func() { panic("in the critical section") })
	wantFree(ctx, t, h, key)

	exited := make(chan struct{})
	go func() {
		defer close(exited)
		do(runtime.Goexit)
	}()
	<-exited
	wantFree(ctx, t, h, key)
}
