// Package backoff computes the pause between two attempts, with jitter, and waits for it. It is by hand, because libraries
// own the loop around the attempts, and here the loops differ in what they release before a pause.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits for d and reports whether ctx is still alive. It returns at once when ctx ends.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Jitter is Sleep for a random time of d/2 to d, so that processes which failed together do not retry together.
func Jitter(ctx context.Context, d time.Duration) bool {
	return Sleep(ctx, d/2+rand.N(max(1, d/2)))
}
