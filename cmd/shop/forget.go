package main

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/timeout"
)

const (
	// answersAge is how long the answer to a request with an Idempotency-Key is kept.
	answersAge = 24 * time.Hour

	forgetEvery = time.Minute
	forgetTime  = 5 * time.Minute // at most, at a time

	answersDuty = "answers" // of the leader of the shop, and not of those of lanes
)

// forget returns what deletes old answers while the instance leads the shop, until its context ends.
func forget(store *sqlstore.Store, lead *leadership, lane string, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		for lane == timeout.Base { // leaders of lanes have terms of their own

			select {
			case <-ctx.Done():
				return nil
			case <-time.After(forgetEvery/2 + rand.N(forgetEvery)):
			}
			n, leads, err := forgetOnce(ctx, store, lead)
			switch {
			case ctx.Err() != nil, !leads:
			case err != nil:
				log.WarnContext(ctx, "old answers are kept for now", slog.String("error", err.Error()))
			default:
				log.DebugContext(ctx, "old answers deleted", slog.Int64("answers", n))
			}
		}
		return nil
	}
}

// forgetOnce deletes the old answers if the instance leads.
func forgetOnce(ctx context.Context, store *sqlstore.Store, lead *leadership) (n int64, leads bool, err error) {
	leads, err = lead.during(ctx, func(ctx context.Context, term *cluster.Term) error {
		ctx, cancel := context.WithTimeout(ctx, forgetTime)
		defer cancel()
		office, err := store.TakeOffice(ctx, answersDuty, term)
		if err != nil {
			return err
		}
		n, err = store.PurgeAnswers(ctx, office, answersAge, math.MaxInt)
		return err
	})
	return n, leads, err
}
