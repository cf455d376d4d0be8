package otellock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/otellock"
)

// A capability that the decorated Locker lacks is an error.
func TestUnsupportedCapabilities(t *testing.T) {
	unable, err := otellock.New(dlocktest.Fails(nil), otellock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	each, err := unable.TryAcquireEach(t.Context(), []string{"a"})
	if each != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("TryAcquireEach = %v, %v, want ErrUnsupported", each, err)
	}
	if err := unable.RaiseCounter(t.Context(), "a", 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("RaiseCounter = %v, want ErrUnsupported", err)
	}
}

// One call for several keys is one lock.acquire, and one lock.hold for the keys that were granted.
func TestTryAcquireEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if _, err := r.inner.TryAcquire(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		lease, err := r.TryAcquireEach(t.Context(), []string{"a", "b", "c"})
		if err != nil {
			t.Fatal(err)
		}
		none, err := r.TryAcquireEach(t.Context(), []string{"b", "c"})
		if none != nil || err != nil {
			t.Errorf("keys that are held: %v, %v", none, err)
		}
		if got := r.points(t)["shop.locks.held{backend=memory}"]; got != 2 {
			t.Errorf("shop.locks.held = %v, want 2", got)
		}
		time.Sleep(3 * time.Second)
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		type span struct {
			Name, Outcome string
			Keys, Granted int64
		}
		var got []span
		for _, s := range r.spans.Ended() {
			attrs := attribute.NewSet(s.Attributes()...)
			outcome, _ := attrs.Value("outcome")
			keys, _ := attrs.Value("lock.keys")
			granted, _ := attrs.Value("lock.granted")
			got = append(got, span{s.Name(), outcome.AsString(), keys.AsInt64(), granted.AsInt64()})
		}
		want := []span{{"lock.acquire", "acquired", 3, 2}, {"lock.acquire", "held", 2, 0}, {"lock.release", "released", 2, 0}, {"lock.hold", "released", 2, 0}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
		points := map[string]float64{
			"shop.lock.wait{backend=memory,outcome=acquired}": 0,
			"shop.lock.wait{backend=memory,outcome=held}":     0,
			"shop.lock.refused{backend=memory,outcome=held}":  1,
			"shop.lock.hold{backend=memory,outcome=released}": 3,
			"shop.locks.held{backend=memory}":                 0,
			"shop.lock.waiters{backend=memory}":               0,
		}
		if diff := cmp.Diff(points, r.points(t)); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		r.inner.Expire("b")
		time.Sleep(ttl)
	})
}
