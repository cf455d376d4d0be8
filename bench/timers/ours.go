package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
)

const kind = "order.expire"

// firstID makes ids of 16 digits.
const firstID = 7_000_000_000_000_000

func idOf(n int) string { return strconv.Itoa(firstID + n) }

// inMemory is our queue on Redis with rows that cost next to nothing: what the engine
// and Redis do by themselves.
func inMemory() subject {
	return subject{name: "ours, rows in memory", ours: true, writers: 4, chunk: 1, open: func(ctx context.Context, s *servers, fired func(alarm, time.Time)) (*queue, error) {
		o, err := newOurs(s, newMemory(), timeout.Config{})
		if err != nil {
			return nil, err
		}
		return o.queue(ctx, fired)
	}}
}

// inDatabase is our queue as it is used: rows in a database, 50 of them written in
// one transaction.
func inDatabase(engine string) subject {
	return subject{name: "ours, rows in " + engine, ours: true, writers: 4, chunk: 50, open: func(ctx context.Context, s *servers, fired func(alarm, time.Time)) (*queue, error) {
		o, err := openOurs(ctx, s, engine, timeout.Config{})
		if err != nil {
			return nil, err
		}
		return o.queue(ctx, fired)
	}}
}

// queue runs the queue with the defaults of the product.
func (o *ours) queue(ctx context.Context, fired func(alarm, time.Time)) (*queue, error) {
	err := o.q.Handle(kind, func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		now := time.Now()
		outcomes := make([]timeout.Outcome, len(batch))
		for i, f := range batch {
			id, err := strconv.Atoi(f.ID)
			if err != nil {
				return nil, err
			}
			fired(alarm{id - firstID, f.Due}, now)
			outcomes[i] = timeout.Done()
		}
		return outcomes, nil
	}, timeout.Options{})
	if err != nil {
		return nil, errors.Join(err, o.close(ctx))
	}
	o.run(ctx)
	return &queue{
		schedule: func(ctx context.Context, alarms []alarm) error {
			timers := make([]timeout.Timer, len(alarms))
			for i, a := range alarms {
				timers[i] = timeout.Timer{Kind: kind, ID: idOf(a.n), Due: a.due}
			}
			push, err := o.q.Schedule(ctx, nil, timers...)
			if err != nil {
				return err
			}
			push()
			return nil
		},
		close: o.close,
	}, nil
}

// ours is a queue with its connections.
type ours struct {
	rows  timeout.Store
	db    *sqlstore.Store // with the rows; nil: they are in memory
	index *redisindex.Index
	q     *timeout.Queue
	ends  []func(context.Context) error // of what close ends, the last one first
}

func newOurs(s *servers, rows timeout.Store, cfg timeout.Config) (o *ours, err error) {
	rdb := s.redis.Client()
	o = &ours{rows: rows, ends: []func(context.Context) error{func(context.Context) error { return rdb.Close() }}}
	if o.index, err = redisindex.New(rdb, redisindex.Config{}); err == nil {
		o.q, err = timeout.New(rows, o.index, cfg)
	}
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return o, nil
}

// openOurs is newOurs with rows in a new database of an engine.
func openOurs(ctx context.Context, s *servers, engine string, cfg timeout.Config) (*ours, error) {
	db, drop, err := s.database(ctx, engine)
	if err != nil {
		return nil, err
	}
	rows, err := db.Timers()
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	o, err := newOurs(s, rows, cfg)
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	o.db, o.ends = db, slices.Insert(o.ends, 0, drop)
	return o, nil
}

// run runs the queue until it is closed.
func (o *ours) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- o.q.Run(ctx) }()
	o.ends = append(o.ends, func(context.Context) error {
		cancel()
		if err := <-ended; err != nil {
			return fmt.Errorf("run: %w", err)
		}
		return nil
	})
}

// close ends the queue with its connections and its database.
func (o *ours) close(ctx context.Context) error {
	var errs []error
	for _, end := range slices.Backward(o.ends) {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}
