package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/testbed/testbedtest"
)

// TestCallThatWasNotSent gives up while another call is under way: nothing can
// have been taken, so nothing is uncertain.
func TestCallThatWasNotSent(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, link := behind(t, testbedtest.Redis(t), redislock.Config{TTL: ttl})
		load(t, l)
		link.Cut()
		under := make(chan error, 1)
		go func() {
			_, err := l.TryAcquire(t.Context(), rand.Text())
			under <- err
		}()
		<-time.After(ttl / 20)
		short, cancel := context.WithTimeout(t.Context(), ttl/20)
		defer cancel()
		if _, err := l.TryAcquire(short, rand.Text()); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("TryAcquire = %v, want the end of the context and no uncertainty", err)
		}
		if err := <-under; !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("the call under way: %v, want ErrUncertain", err)
		}
		link.Heal()
	})
}

// TestCancelledCallReturnsAtOnce: a client does not interrupt a read, its caller does.
func TestCancelledCallReturnsAtOnce(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, link := behind(t, testbedtest.Redis(t), redislock.Config{TTL: ttl})
		load(t, l)
		link.Cut()
		defer link.Heal()
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		time.AfterFunc(ttl/20, cancel)
		if _, err := l.TryAcquire(ctx, rand.Text()); !errors.Is(err, context.Canceled) || !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("TryAcquire = %v, want the end of the context, and uncertainty", err)
		}
		if d := time.Since(start); d > ttl/5 {
			t.Errorf("TryAcquire returned after %v", d)
		}
	})
}
