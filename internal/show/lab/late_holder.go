package lab

import (
	"context"
	"errors"
	"strconv"
	"time"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/stock"
)

// LateHolder is a process that holds a lease of a SKU. It is paused until others have held the lease, and then
// writes.
type LateHolder struct {
	SKU             string
	Update          stock.Update
	Database, Redis string // addresses, as instances have them

	// Granted is called when the process has the lease.
	Granted func(token uint64)

	// Written is called when the process has written, with 0, or was refused with the token that the row had accepted.
	Written func(accepted uint64)
}

// LateTTL is how long the lease lasts, and latePause the least time that it is over when the holder writes: long enough to be seen.
// lateTimeout bounds all of it, also if the stores are slow or paused.
const (
	LateTTL     = time.Second
	latePause   = time.Second
	lateTimeout = 2 * time.Minute
)

// Do runs the process. It returns when the process has written and ended.
func (l LateHolder) Do(ctx context.Context, c Config) error {
	ctx, cancel := context.WithTimeout(ctx, lateTimeout)
	defer cancel()
	r := &Run{Config: c, lab: must(Find("paused-holder"))}
	err := attempt(func() { l.run(ctx, r) })
	return errors.Join(err, r.close())
}

func (l LateHolder) run(ctx context.Context, r *Run) {
	locker := must(redislock.New(r.client(l.Redis), redislock.Config{}))
	r.Defer(func() error { return locker.Close(context.WithoutCancel(ctx)) })
	p := r.Start(ctx, "late", map[string]string{
		"database": l.Database, "redis": l.Redis, "name": "late", "sku": l.SKU,
		"update": strconv.Itoa(int(l.Update)), "ttl": LateTTL.String(), "stop": pointRead,
	})
	token := must(strconv.ParseUint(p.Until(ctx, pointLocked).Value, 10, 64))
	p.Until(ctx, pointRead)
	p.Pause()
	l.Granted(token)
	await(ctx, "the lease to expire", func() bool {
		state := must(locker.Inspect(ctx, stock.LockKey(l.SKU)))
		return !state.Held || state.Fence.Token != token
	})
	if !backoff.Sleep(ctx, latePause) {
		check(context.Cause(ctx))
	}
	p.Resume()
	p.Continue()
	var accepted uint64
	for report := range p.reports {
		switch report.Point {
		case pointFenced:
			accepted, _ = strconv.ParseUint(report.Value, 10, 64)
		case pointDone:
			l.Written(accepted)
			return
		}
	}
	fail("the late holder ended before it wrote: %s", p.stderr.String())
}
