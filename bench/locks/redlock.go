package main

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/dlock/redlock"
)

// Workloads on five servers.
const (
	fiveWell   = "five servers"
	fiveFrozen = "five servers, one frozen"
)

// nodes are servers that know nothing of one another.
type nodes []*measure.Server

func startNodes(ctx context.Context) (nodes, error) {
	var n nodes
	for range 5 {
		server, err := measure.OpenServer(ctx, "")
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n = append(n, server)
	}
	return n, nil
}

// Close ends all of them.
func (n nodes) Close() error {
	var errs []error
	for _, server := range n {
		errs = append(errs, server.Started.Close())
		server.Close()
	}
	return errors.Join(errs...)
}

// freezeOne stops one of the five until it is repaired.
func freezeOne(on *servers) (repair func() error, err error) {
	five, err := on.five()
	if err != nil {
		return nil, err
	}
	return five[0].Started.Resume, five[0].Started.Pause()
}

// fiveLocks are the subjects on five servers. redsync with its defaults waits for all servers. With fail fast, which
// its documentation advises for servers that block, it returns with the majority.
func fiveLocks() []subject {
	return []subject{
		{name: oursThere, ours: true, open: onFive(func(clients []*redis.Client) (*client, error) {
			var all []redis.UniversalClient
			for _, rdb := range clients {
				all = append(all, rdb)
			}
			// No earlier grant can be valid: the servers are new, and lose no data.
			l, err := redlock.New(all, redlock.Config{TTL: ttl, Settle: -1})
			if err != nil {
				return nil, err
			}
			return &client{acquire: leases(l), close: l.Close}, nil
		})},
		{name: "redsync", open: onFive(redsyncFive())},
		{name: "redsync, fail fast", open: onFive(redsyncFive(redsync.WithFailFast(true)))},
	}
}

func redsyncFive(options ...redsync.Option) func([]*redis.Client) (*client, error) {
	return func(clients []*redis.Client) (*client, error) {
		var pools []redsyncredis.Pool
		for _, rdb := range clients {
			pools = append(pools, goredis.NewPool(rdb))
		}
		return &client{acquire: measure.Redsync(redsync.New(pools...), ttl, options...)}, nil
	}
}

// onFive is a client with a pool for each server.
func onFive(open func([]*redis.Client) (*client, error)) func(context.Context, *servers) (*client, error) {
	return func(_ context.Context, on *servers) (*client, error) {
		five, err := on.five()
		if err != nil {
			return nil, err
		}
		var clients []*redis.Client
		end := func() error {
			var errs []error
			for _, rdb := range clients {
				errs = append(errs, rdb.Close())
			}
			return errors.Join(errs...)
		}
		for _, server := range five {
			clients = append(clients, server.Client())
		}
		c, err := open(clients)
		return c.on(err, end)
	}
}

// redlockTable has what is of interest when a server is silent: how long calls take.
func (r *report) redlockTable() *measure.Table {
	t := &measure.Table{
		Title: "Redlock: five servers, one caller; all of them well, and one frozen",
		Header: []string{
			"", "acquire p50", "p99", "release p50", "p99",
			"one frozen: acquire p50", "p99", "release p50", "p99", "p99 of acquire, frozen to well", "of release",
		},
	}
	for _, name := range r.subjects(fiveWell) {
		well, frozen := r.found.Cell(fiveWell, name), r.found.Cell(fiveFrozen, name)
		row := []string{name}
		for _, c := range []cell{well, frozen} {
			row = append(row, measure.Took(c.Mid(p50)), measure.Took(c.Mid(p99)), measure.Took(c.Mid(gave50)), measure.Took(c.Mid(gave99)))
		}
		t.Add(append(row, measure.Times(measure.Ratio(frozen, well, p99)), measure.Times(measure.Ratio(frozen, well, gave99)))...)
	}
	return t
}

// redlockTargets are about this project alone. A lock that waits for a frozen server is not fast.
func (r *report) redlockTargets(t *measure.Table) {
	well, frozen := r.found.Cell(fiveWell, oursThere), r.found.Cell(fiveFrozen, oursThere)
	if len(well) == 0 || len(frozen) == 0 {
		return
	}
	const most = 1.5
	atMost(t, "redlock, one of five frozen: p99 of acquire to that with all", measure.Ratio(frozen, well, p99), most)
	atMost(t, "the same of release", measure.Ratio(frozen, well, gave99), most)
}
