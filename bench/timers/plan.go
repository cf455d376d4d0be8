package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/order"
)

// Names of workloads.
const (
	late    = "late"    // timers that fire at a steady rate
	slow    = "slow"    // the same, for those who take long
	acked   = "acked"   // 64 callers schedule, and wait
	drain   = "drain"   // claim a backlog
	pending = "pending" // what a timer takes in Redis
	lost    = "lost"    // an empty index gets the rows of the next minute
	rowed   = "rowed"   // schedule with a row
	expiry  = "expiry"  // orders
)

// Rates at which the firing delay is measured. The target is about the first rate.
const (
	highRate   = 20_000
	middleRate = 2_000
	lowRate    = 200
)

// Names of cases.
const (
	oursMemory   = "ours, rows in memory"
	oursMaria    = "ours, rows in MariaDB"
	asynqDefault = "asynq, defaults"
	asynqTuned   = "asynq, tuned"
	oursIndex    = "ours, index"
	shortID      = "ours, ids of 16 digits"
	orderID      = "ours, order ids (36 characters)"
	onePerTx     = "1 per transaction, 16 goroutines"
	manyPerTx    = "50 per transaction, 4 goroutines"
	throughQueue = "index, queue and database, all due at once"
	byItself     = "the transaction by itself, 4 at once"
)

// many says how large the runs are that are made of so many timers.
type many struct {
	memory, asynqMemory, lost, drain, asynqDrain, orders int
}

func manyFor(quick bool) many {
	if quick {
		return many{20_000, 5_000, 20_000, 20_000, 1_000, 1_000}
	}
	return many{1_000_000, 200_000, 1_000_000, 200_000, 10_000, 20_000}
}

func plan(on *servers, quick bool) []measure.Workload[sample] {
	n := manyFor(quick)
	all := []measure.Workload[sample]{
		{Name: late, Weight: 1, Cases: append(rates(on, oursMemory, inMemory(), highRate, middleRate, lowRate), append(
			rates(on, oursMaria, inDatabase(inMaria), highRate, middleRate, lowRate),
			rates(on, asynqTuned, asynqSubject(asynqTuned, tuned()), middleRate, lowRate)...)...)},
		{Name: slow, Weight: 1, Once: true, Cases: append(
			rates(on, asynqTuned, asynqSubject(asynqTuned, tuned()), highRate),
			rates(on, asynqDefault, asynqSubject(asynqDefault, asynq.Config{}), highRate, middleRate, lowRate)...)},
		{Name: acked, Weight: 1, Cases: []measure.Case[sample]{
			half(oursIndex, func(ctx context.Context, d time.Duration) (sample, error) { return acknowledgedOurs(ctx, on, d) }),
			half(asynqTuned, func(ctx context.Context, d time.Duration) (sample, error) { return acknowledgedAsynq(ctx, on, d) }),
		}},
		{Name: drain, Weight: 1, Cases: []measure.Case[sample]{
			fixed(oursIndex+", batches of 128", func(ctx context.Context) (sample, error) { return drainOurs(ctx, on, n.drain, 128) }),
			fixed(oursIndex+", batches of 512", func(ctx context.Context) (sample, error) { return drainOurs(ctx, on, n.drain, 512) }),
			fixed(asynqTuned, func(ctx context.Context) (sample, error) { return drainAsynq(ctx, on, n.asynqDrain) }),
		}},
		{Name: pending, Weight: 1, Once: true, Cases: []measure.Case[sample]{
			fixed(shortID, func(ctx context.Context) (sample, error) { return memoryOurs(ctx, on, n.memory, idOf) }),
			fixed(orderID, func(ctx context.Context) (sample, error) {
				return memoryOurs(ctx, on, n.memory, func(int) string { return order.NewID() })
			}),
			fixed(asynqDefault, func(ctx context.Context) (sample, error) { return memoryAsynq(ctx, on, n.asynqMemory) }),
		}},
		{Name: lost, Weight: 1, Once: true, Cases: []measure.Case[sample]{
			fixed(inMaria, func(ctx context.Context) (sample, error) { return passing(ctx, on, inMaria, n.lost) }),
		}},
		{Name: expiry, Weight: 1, Cases: []measure.Case[sample]{
			fixed(throughQueue, func(ctx context.Context) (sample, error) {
				return expiring(ctx, on, n.orders, time.Duration(n.orders/5000+1)*time.Second)
			}),
			fixed(byItself, func(ctx context.Context) (sample, error) { return alone(ctx, on, n.orders) }),
		}},
	}
	return append(all, rows(on))
}

func rows(on *servers) measure.Workload[sample] {
	w := measure.Workload[sample]{Name: rowed, Weight: 1}
	for _, engine := range []string{inMaria, inSQLite} {
		for _, c := range []struct {
			name              string
			goroutines, chunk int
		}{{onePerTx, 16, 1}, {manyPerTx, 4, 50}} {
			w.Cases = append(w.Cases, half(engine+", "+c.name, func(ctx context.Context, d time.Duration) (sample, error) {
				return withRows(ctx, on, engine, c.goroutines, c.chunk, d)
			}))
		}
	}
	return w
}

// rates is one subject at several rates.
func rates(on *servers, name string, s subject, perSecond ...int) []measure.Case[sample] {
	var cases []measure.Case[sample]
	for _, n := range perSecond {
		cases = append(cases, measure.Case[sample]{Name: at(name, n), Run: func(ctx context.Context, d time.Duration) (sample, error) {
			return firingDelays(ctx, on, s, n, d)
		}})
	}
	return cases
}

func at(name string, perSecond int) string { return fmt.Sprintf("%s, %d/s", name, perSecond) }

// half takes half of its time.
func half(name string, run func(context.Context, time.Duration) (sample, error)) measure.Case[sample] {
	return measure.Case[sample]{Name: name, Run: func(ctx context.Context, d time.Duration) (sample, error) { return run(ctx, d/2) }}
}

// fixed takes as long as its number of timers does.
func fixed(name string, run func(context.Context) (sample, error)) measure.Case[sample] {
	return measure.Case[sample]{Name: name, Run: func(ctx context.Context, _ time.Duration) (sample, error) { return run(ctx) }}
}
