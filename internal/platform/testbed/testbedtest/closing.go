package testbedtest

import (
	"context"
	"testing"
	"time"
)

// Closing calls end when the test ends, with a context of two minutes, and fails the test if end does.
func Closing(t testing.TB, end func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		if err := end(ctx); err != nil {
			t.Error(err)
		}
	})
}
