package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/platform/backoff"
)

const (
	soonest  = 200 * time.Millisecond // delays are between soonest and latest
	latest   = time.Second
	tick     = 2 * time.Millisecond // of the generator
	settling = 400 * time.Millisecond
	patience = 25 * time.Second // for what has not fired when all was due
)

// alarm is a timer of a run, as all subjects get it.
type alarm struct {
	n   int
	due time.Time
}

// subject is a delay queue in one configuration.
type subject struct {
	name    string
	ours    bool
	writers int // callers that schedule
	chunk   int // timers of one call, at most
	open    func(ctx context.Context, s *servers, fired func(alarm, time.Time)) (*queue, error)
}

// queue is a subject that runs.
type queue struct {
	schedule func(ctx context.Context, alarms []alarm) error
	close    func(ctx context.Context) error
}

// firingDelays measures firing delays: it schedules perSecond timers in every second of d, and fires them.
func firingDelays(ctx context.Context, on *servers, s subject, perSecond int, d time.Duration) (result sample, err error) {
	if err := on.empty(ctx); err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d+latest+2*patience)
	defer cancel()
	r := newRecord(int(float64(perSecond) * d.Seconds()))
	q, err := s.open(ctx, on, r.fire)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, q.close(ctx)) }()
	backoff.Sleep(ctx, settling) // until it is connected, and idle
	before, err := on.redis.Usage(ctx)
	if err != nil {
		return sample{}, err
	}
	floor, start := noise(), time.Now()
	if err := r.schedule(ctx, q, s, perSecond); err != nil {
		return sample{}, err
	}
	scheduled := time.Since(start)
	backoff.Sleep(ctx, latest)
	loaded := time.Since(start)
	after, err := on.redis.Usage(ctx)
	if err != nil {
		return sample{}, err
	}
	p99 := floor()
	r.wait(ctx)
	result = r.summary(p99)
	result.offered, result.scheduled = float64(perSecond), float64(len(r.seen))/scheduled.Seconds()
	result.redis, result.own = share(before, after, loaded)
	if s.ours && (result.early > 0 || result.lost > 0) {
		return sample{}, fmt.Errorf("%.0f timers of %d were early, %.0f did not fire", result.early, len(r.seen), result.lost)
	}
	return result, nil
}

// schedule hands out the timers at a steady rate; whoever is to schedule them takes
// as many as there are, up to its chunk. It returns when all are scheduled.
func (r *record) schedule(ctx context.Context, q *queue, s subject, perSecond int) error {
	waiting := make(chan alarm, len(r.seen))
	errs := make(chan error, s.writers)
	var writers sync.WaitGroup
	for range s.writers {
		writers.Go(func() {
			if err := write(ctx, waiting, s.chunk, q.schedule); err != nil {
				errs <- err
			}
		})
	}
	start := time.Now()
	every := time.NewTicker(tick)
	defer every.Stop()
	for n := 0; n < len(r.seen) && ctx.Err() == nil; <-every.C {
		for until := min(len(r.seen), int(float64(perSecond)*time.Since(start).Seconds())); n < until; n++ {
			delay := soonest + rand.N(latest-soonest)
			waiting <- alarm{n, time.Now().Add(delay).Truncate(time.Millisecond)}
		}
	}
	close(waiting)
	writers.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

// write schedules what comes until there is no more.
func write(ctx context.Context, waiting <-chan alarm, chunk int, schedule func(context.Context, []alarm) error) error {
	for a := range waiting {
		alarms := []alarm{a}
	more:
		for len(alarms) < chunk {
			select {
			case a, open := <-waiting:
				if !open {
					break more
				}
				alarms = append(alarms, a)
			default:
				break more
			}
		}
		if err := schedule(ctx, alarms); err != nil {
			return err
		}
	}
	return nil
}

// share returns the processor time between two looks, of the server and of this
// process, as a share of one core.
func share(before, after measure.Usage, d time.Duration) (redis, own float64) {
	return float64(after.CPU-before.CPU) / float64(d), float64(after.Own-before.Own) / float64(d)
}
