package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
	"github.com/redis/go-redis/v9"
)

const kind = "order.expire"

// firstID makes ids of 16 digits.
const firstID = 7_000_000_000_000_000

func idOf(n int) string { return strconv.Itoa(firstID + n) }

// inMemory is our queue on Redis with rows that cost next to nothing: what the engine
// and Redis do by themselves.
func inMemory() subject {
	return subject{name: "ours, rows in memory", ours: true, writers: 4, chunk: 1, open: func(ctx context.Context, s *servers, fired func(alarm, time.Time)) (*queue, error) {
		return openQueue(ctx, s, newMemory(), fired, nil)
	}}
}

// inDatabase is our queue as it is used: rows in a database, 50 of them written in
// one transaction.
func inDatabase(engine string) subject {
	return subject{name: "ours, rows in " + engine, ours: true, writers: 4, chunk: 50, open: func(ctx context.Context, s *servers, fired func(alarm, time.Time)) (*queue, error) {
		db, drop, err := s.database(ctx, engine)
		if err != nil {
			return nil, err
		}
		rows, err := db.Timers()
		if err != nil {
			return nil, errors.Join(err, drop(ctx))
		}
		return openQueue(ctx, s, rows, fired, drop)
	}}
}

// openQueue runs a queue with the defaults of the product. Drop is called at its end.
func openQueue(ctx context.Context, s *servers, rows timeout.Store, fired func(alarm, time.Time), drop func(context.Context) error) (*queue, error) {
	o, err := newOurs(s, rows, timeout.Config{})
	if err != nil {
		return nil, err
	}
	err = o.q.Handle(kind, func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
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
		return nil, err
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
		close: func(ctx context.Context) error {
			err := o.stop()
			if drop != nil {
				err = errors.Join(err, drop(ctx))
			}
			return err
		},
	}, nil
}

// ours is a queue with its connections.
type ours struct {
	rdb   *redis.Client
	index *redisindex.Index
	q     *timeout.Queue
	stop  func() error // ends run, and the connections
}

func newOurs(s *servers, rows timeout.Store, cfg timeout.Config) (*ours, error) {
	o := &ours{rdb: s.redis.Client()}
	var err error
	if o.index, err = redisindex.New(o.rdb, redisindex.Config{}); err != nil {
		return nil, errors.Join(err, o.rdb.Close())
	}
	o.q, err = timeout.New(rows, o.index, cfg)
	if err != nil {
		return nil, errors.Join(err, o.rdb.Close())
	}
	o.stop = o.rdb.Close
	return o, nil
}

// run runs the queue until stop is called.
func (o *ours) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- o.q.Run(ctx) }()
	o.stop = func() error {
		cancel()
		err := <-ended
		if err != nil {
			err = fmt.Errorf("run: %w", err)
		}
		return errors.Join(err, o.rdb.Close())
	}
}
