package sqldb

import (
	"context"
	"time"

	"example.com/shop/internal/backoff"
)

// MaxRetries is how often [Retry] repeats a failed call.
const MaxRetries = 5

// Retry calls f until f succeeds, until again rejects the error of f, until ctx ends, or 1 + [MaxRetries] times. It
// returns the last error of f. The first pause takes up to the given time, and each further pause twice as long. If
// f writes, it must be safe to repeat: a transaction that was rolled back, or a single statement.
func Retry(ctx context.Context, pause time.Duration, again func(error) bool, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || ctx.Err() != nil || try == MaxRetries || !again(err) || !backoff.Jitter(ctx, pause<<try) {
			return err
		}
	}
}
