package app

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/timeout"
)

const (
	// answersAge is how long the answer to a request with an Idempotency-Key is kept.
	answersAge = 24 * time.Hour

	purgeEvery   = time.Minute
	purgeTimeout = 5 * time.Minute // at most, at a time
)

// purgeIdempotencyKeys returns what deletes old answers while the instance leads, until its context ends.
func purgeIdempotencyKeys(store *sqlstore.Store, lead *leadership, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		for backoff.Sleep(ctx, purgeEvery/2+rand.N(purgeEvery)) {
			n, leads, err := purgeOnce(ctx, store, lead)
			switch {
			case ctx.Err() != nil, !leads:
			case err != nil:
				log.WarnContext(ctx, "idempotency keys not purged; retrying later", slog.String("error", err.Error()))
			default:
				log.DebugContext(ctx, "idempotency keys purged", slog.Int64("keys", n))
			}
		}
		return nil
	}
}

// purgeOnce deletes the old answers if the instance leads. Each transaction is refused when another instance does.
func purgeOnce(ctx context.Context, store *sqlstore.Store, lead *leadership) (n int64, leads bool, err error) {
	leads, err = lead.during(ctx, func(ctx context.Context, term *cluster.Term) error {
		ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
		defer cancel()
		hold := func(ctx context.Context, tx timeout.Tx) error { return lead.election.Hold(ctx, tx, term.Leader()) }
		n, err = store.PurgeAnswers(ctx, hold, answersAge, math.MaxInt)
		return err
	})
	return n, leads, err
}
