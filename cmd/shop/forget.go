package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/sqlstore"
)

const (
	// answersAge is how long the answer to a request with an Idempotency-Key is kept.
	answersAge = 24 * time.Hour

	forgetEvery = time.Minute
	forgetTime  = 5 * time.Minute // at most, at a time
)

// forget returns what deletes old answers, until its context ends. One instance does it at a
// time; without locks all do, which costs a statement that finds nothing.
func forget(store *sqlstore.Store, locks dlock.Locker, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(forgetEvery/2 + rand.N(forgetEvery)):
			}
			n, err := forgetOnce(ctx, store, locks)
			switch {
			case ctx.Err() != nil, errors.Is(err, dlock.ErrHeld):
			case err != nil:
				log.WarnContext(ctx, "old answers are kept for now", slog.String("error", err.Error()))
			default:
				log.DebugContext(ctx, "old answers deleted", slog.Int64("answers", n))
			}
		}
	}
}

func forgetOnce(ctx context.Context, store *sqlstore.Store, locks dlock.Locker) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, forgetTime)
	defer cancel()
	if locks == nil {
		return store.PurgeAnswers(ctx, answersAge, math.MaxInt)
	}
	lease, err := locks.TryAcquire(ctx, "purge:idempotency")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lease.Release(ctx)) }()
	ctx, stop := lease.Context(ctx)
	defer stop()
	return store.PurgeAnswers(ctx, answersAge, math.MaxInt)
}
