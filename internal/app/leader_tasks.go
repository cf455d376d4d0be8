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

// KeyRetention is how long the response to a request with an Idempotency-Key is kept by default.
const KeyRetention = 24 * time.Hour

// purgeEvery is the mean time from the end of a purge of orders to the next one. The shortest is half of it.
const purgeEvery = 10 * time.Minute

// leaderTask changes the database with the rights of the leader, and returns how much. [sqlstore.Store.PurgeAnswers] says what hold is.
type leaderTask func(ctx context.Context, hold func(context.Context, timeout.Tx) error) (n int64, err error)

// purgeIdempotencyKeys returns what deletes old answers while the instance leads, until its context ends.
func purgeIdempotencyKeys(store *sqlstore.Store, age time.Duration, lead *leadership, log *slog.Logger) func(context.Context) error {
	return repeated("purge of idempotency keys", time.Minute, slog.LevelDebug, lead, log, answersOf(store, age))
}

func answersOf(store *sqlstore.Store, age time.Duration) leaderTask {
	return func(ctx context.Context, hold func(context.Context, timeout.Tx) error) (int64, error) {
		return store.PurgeAnswers(ctx, hold, age, math.MaxInt)
	}
}

// purgeOrders returns the same for orders that are older than the retention, if it is not 0.
func purgeOrders(store *sqlstore.Store, retention, every time.Duration, lead *leadership, log *slog.Logger) func(context.Context) error {
	if retention == 0 {
		return func(context.Context) error { return nil }
	}
	return repeated("purge of orders", every, slog.LevelInfo, lead, log, ordersOf(store, retention))
}

func ordersOf(store *sqlstore.Store, retention time.Duration) leaderTask {
	return func(ctx context.Context, hold func(context.Context, timeout.Tx) error) (int64, error) {
		return store.PurgeOrders(ctx, hold, retention)
	}
}

// shortenWaits returns what ends waits that are longer than they may be, as the clock of the database was set back.
func shortenWaits(store *sqlstore.Store, ttl func() time.Duration, lead *leadership, log *slog.Logger) func(context.Context) error {
	return repeated("end of waits that are too long", time.Minute, slog.LevelDebug, lead, log, func(ctx context.Context, hold func(context.Context, timeout.Tx) error) (int64, error) {
		n, err := store.ShortenWaits(ctx, hold, ttl())
		if n > 0 {
			log.WarnContext(ctx, "the clock of the database was set back; the time of open orders begins again", slog.Int64("orders", n))
		}
		return n, err
	})
}

// repeated returns what changes the database about every so often while the instance leads, and for five times as long at most. It logs each time,
// with the number of rows, at level.
func repeated(what string, every time.Duration, level slog.Level, lead *leadership, log *slog.Logger, p leaderTask) func(context.Context) error {
	return func(ctx context.Context) error {
		for backoff.Sleep(ctx, every/2+rand.N(every)) {
			n, leads, err := onceAsLeader(ctx, lead, 5*every, p)
			switch {
			case ctx.Err() != nil, !leads:
			case err != nil:
				log.WarnContext(ctx, "task of the leader failed; retrying later", slog.String("task", what), slog.Int64("rows", n), slog.String("error", err.Error()))
			default:
				log.Log(ctx, level, "task of the leader done", slog.String("task", what), slog.Int64("rows", n))
			}
		}
		return nil
	}
}

// onceAsLeader does p if the instance leads. Each transaction is refused when another instance does.
func onceAsLeader(ctx context.Context, lead *leadership, most time.Duration, p leaderTask) (n int64, leads bool, err error) {
	leads, err = lead.during(ctx, func(ctx context.Context, term *cluster.Term) error {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		n, err = p(ctx, func(ctx context.Context, tx timeout.Tx) error { return lead.election.Hold(ctx, tx, term.Leader()) })
		return err
	})
	return n, leads, err
}
