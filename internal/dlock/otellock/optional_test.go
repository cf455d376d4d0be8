package otellock_test

import (
	"errors"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/otellock"
)

// The decorator has exactly the optional capabilities of the decorated Locker.
func TestOptionalCapabilities(t *testing.T) {
	able, err := otellock.New(memlock.New(memlock.Config{TTL: ttl}), otellock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	unable, err := otellock.New(refusing{}, otellock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := able.AcquireAll(t.Context(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := able.Inspect(t.Context(), "a"); err != nil || state.Fence != lease.Fence() {
		t.Errorf("Inspect = %+v, %v, want the fence %v", state, err, lease.Fence())
	}
	if err := able.ForceRelease(t.Context(), "b"); err != nil || !errors.Is(lease.Err(), dlock.ErrLost) {
		t.Errorf("ForceRelease = %v, and the lease is %v", err, lease.Err())
	}
	_, err = unable.AcquireAll(t.Context(), []string{"a"})
	_, inspected := unable.Inspect(t.Context(), "a")
	for _, err := range []error{err, inspected, unable.ForceRelease(t.Context(), "a")} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("error = %v, want ErrUnsupported", err)
		}
	}
}
