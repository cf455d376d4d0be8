package main

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/shop/bench/measure"
)

// handOff is a key that goes to and fro between two callers. A hold is between least
// and more than that at random: a multiple of no delay between two polls.
type handOff struct {
	clients     int // 1: both are callers of the same one
	least, more time.Duration
}

// run measures a hand-off: from the call of release until the next holder, which waited for the whole hold, runs.
func (h handOff) run(ctx context.Context, on *servers, s subject, d time.Duration) (result sample, err error) {
	all, err := open(ctx, on, s, h.clients)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, all.close(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, d+2*maxWait)
	defer cancel()
	type grant struct {
		release func(context.Context) error
		at      time.Time
		err     error
	}
	key, guarded := crand.Text(), &gate{}
	acquire := func(turn int) grant {
		release, err := all[turn%len(all)].acquire(ctx, key)
		at := time.Now()
		if err == nil {
			guarded.enter(1)
		}
		return grant{release, at, err}
	}
	holder := acquire(0)
	if holder.err != nil {
		return sample{}, holder.err
	}
	var waits []time.Duration
	turn := 1
	for end := time.Now().Add(d); turn <= 3 || time.Now().Before(end); turn++ {
		next := make(chan grant, 1)
		go func() { next <- acquire(turn) }()
		hold := time.NewTimer(h.least + rand.N(h.more))
		select {
		case <-hold.C:
		case <-ctx.Done():
			return sample{}, ctx.Err()
		}
		guarded.leave()
		from := time.Now()
		if err := holder.release(ctx); err != nil {
			return sample{}, err
		}
		if holder = <-next; holder.err != nil {
			return sample{}, holder.err
		}
		if turn > 2 { // both clients are connected, and subscribed
			waits = append(waits, holder.at.Sub(from))
		}
	}
	if err := cmp.Or(holder.release(ctx), guarded.check(1, int64(turn))); err != nil {
		return sample{}, err
	}
	slices.Sort(waits)
	return sample{p50: measure.Percentile(waits, 50), p99: measure.Percentile(waits, 99), max: measure.Percentile(waits, 100)}, nil
}
