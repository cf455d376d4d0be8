package dlock_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"example.com/shop/internal/dlock"
)

// The cause of a context explains its end, and is not the outcome of an acquisition under it.
func TestEndedMatchesTheCauseAndNoOutcome(t *testing.T) {
	t.Parallel()
	lost := &dlock.LostError{Key: "k", Fence: fence, Reason: dlock.Taken}
	path := &fs.PathError{Op: "open", Path: "k", Err: errStore}
	for _, outcome := range []error{dlock.ErrHeld, dlock.ErrUncertain, dlock.ErrReentry, dlock.ErrInvalidPermits} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := fmt.Errorf("a sibling: %w: %w: %w", outcome, lost, path)
		cancel(cause)
		err := fmt.Errorf("acquire: %w", dlock.Ended(ctx))
		if errors.Is(err, outcome) {
			t.Errorf("%v: %v is taken for an outcome", err, outcome)
		}
		for _, target := range []error{context.Canceled, cause, dlock.ErrLost, errStore} {
			if !errors.Is(err, target) {
				t.Errorf("%v does not match %v", err, target)
			}
		}
		if found, ok := errors.AsType[*fs.PathError](err); !ok || found != path {
			t.Errorf("%v has no PathError", err)
		}
	}
}
