package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/redisx"
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

// lateTTL is how long the lease lasts, and latePause the least time that it is over when the holder writes: long enough to be seen.
const (
	lateTTL   = time.Second
	latePause = time.Second
)

// Do runs the process. It returns when the process has written and ended.
func (l LateHolder) Do(ctx context.Context, c Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, labTimeout)
	defer cancel()
	r := &Run{Config: c, lab: pausedHolderLab()}
	defer func() { err = errors.Join(err, r.close()) }()
	rdb, err := redisx.New(l.Redis)
	if err != nil {
		return err
	}
	r.Defer(rdb.Close)
	locker, err := redislock.New(rdb, redislock.Config{})
	if err != nil {
		return err
	}
	r.Defer(func() error { return locker.Close(context.WithoutCancel(ctx)) })
	p, err := r.Start(ctx, "late", map[string]string{
		"database": l.Database, "redis": l.Redis, "name": "late", "sku": l.SKU,
		"update": strconv.Itoa(int(l.Update)), "ttl": lateTTL.String(), "stop": pointRead,
	})
	if err != nil {
		return err
	}
	lease, err := p.Until(ctx, pointLocked)
	if err != nil {
		return err
	}
	token, err := strconv.ParseUint(lease.Value, 10, 64)
	if err != nil {
		return err
	}
	if _, err := p.Until(ctx, pointRead); err != nil {
		return err
	}
	if err := p.Pause(); err != nil {
		return err
	}
	l.Granted(token)
	err = Await(ctx, "the lease to expire", func() (bool, error) {
		state, err := locker.Inspect(ctx, stock.LockKey(l.SKU))
		return !state.Held || state.Fence.Token != token, err
	})
	if err != nil {
		return err
	}
	if !backoff.Sleep(ctx, latePause) {
		return context.Cause(ctx)
	}
	if err := p.Resume(); err != nil {
		return err
	}
	if err := p.Continue(); err != nil {
		return err
	}
	var accepted uint64
	for report := range p.reports {
		switch report.Point {
		case pointFenced:
			accepted, _ = strconv.ParseUint(report.Value, 10, 64)
		case pointDone:
			l.Written(accepted)
			return nil
		}
	}
	return fmt.Errorf("the late holder ended before it wrote: %s", p.stderr.String())
}
