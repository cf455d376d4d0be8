package main

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/shop/loadtest/peers/bench"
)

// handOff measures how long it takes from the call of release to the moment at
// which the next holder runs, on another client, which is waiting by then. The
// hold is between 5 and 55 ms at random: a multiple of no delay between two polls.
func handOff(ctx context.Context, server *bench.Server, s subject, d time.Duration) (result sample, err error) {
	o, err := open(server, s, 2)
	if err != nil {
		return sample{}, err
	}
	defer func() { err = cmp.Or(err, o.close(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, d+2*patience)
	defer cancel()
	type grant struct {
		release func(context.Context) error
		at      time.Time
		err     error
	}
	key := crand.Text()
	release, err := o.clients[0].acquire(ctx, key)
	if err != nil {
		return sample{}, err
	}
	var waits []time.Duration
	end := time.Now().Add(d)
	for turn := 1; turn <= 2 || time.Now().Before(end); turn++ {
		next := make(chan grant, 1)
		go func() {
			release, err := o.clients[turn%2].acquire(ctx, key)
			next <- grant{release, time.Now(), err}
		}()
		hold := time.NewTimer(5*time.Millisecond + rand.N(50*time.Millisecond))
		select {
		case <-hold.C:
		case <-ctx.Done():
			return sample{}, ctx.Err()
		}
		from := time.Now()
		if err := release(ctx); err != nil {
			return sample{}, err
		}
		g := <-next
		if g.err != nil {
			return sample{}, g.err
		}
		release = g.release
		if turn > 2 { // both clients are connected, and subscribed
			waits = append(waits, g.at.Sub(from))
		}
	}
	if err := release(ctx); err != nil {
		return sample{}, err
	}
	slices.Sort(waits)
	return sample{p50: bench.Percentile(waits, 50), p99: bench.Percentile(waits, 99), max: bench.Percentile(waits, 100)}, nil
}
