package etcdlock

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/dlock/driver/rwsides"
)

// RW is [dlock.RWLocker] in etcd. Readers and writers share one queue, first come, first served. A writer waits for
// everyone that came before it, a reader only for the earlier writers. So it is not phase-fair, and still nobody
// starves.
//
// # Data
//
//	shop/rwlocks/KEY/w/OWNER   a writer or one that waits, under its lease
//	shop/rwlocks/KEY/r/OWNER   a reader, likewise
//
// All else is as in the [Locker]: operations, costs, and what a crash leaves behind. A reader reads only the last
// writers, and a writer the last readers and writers.
//
// Every grant has a fencing token of its own, a reader's too: 16 times the revision at which its key was created. It
// is greater than that of earlier writers, and smaller than that of later writers. So a resource refuses a reader
// that a writer has overtaken. The order of readers' tokens means nothing.
type RW struct {
	s     *store
	sides rwsides.Sides
}

var (
	_ dlock.RWLocker      = (*RW)(nil)
	_ dlock.Inspector     = (*RW)(nil)
	_ dlock.ForceReleaser = (*RW)(nil)
)

// NewRW returns an RW on cli, which it does not close.
func NewRW(cli *clientv3.Client, cfg Config) (*RW, error) {
	if err := cfg.validate(rwPrefix); err != nil {
		return nil, fmt.Errorf("etcdlock: %w", err)
	}
	return &RW{s: newStore(cli, cfg)}, nil
}

// Acquire implements [dlock.Locker] for a writer.
func (l *RW) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, writing, l.s.acquire)
}

// TryAcquire implements [dlock.Locker] for a writer.
func (l *RW) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, writing, l.s.tryAcquire)
}

// AcquireRead implements [dlock.RWLocker].
func (l *RW) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, reading, l.s.acquire)
}

// TryAcquireRead implements [dlock.RWLocker].
func (l *RW) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.take(ctx, key, reading, l.s.tryAcquire)
}

func (l *RW) take(ctx context.Context, key, kind string, how func(ctx context.Context, key, kind string, backend any) (*dlock.Lease, error)) (*dlock.Lease, error) {
	write := kind == writing
	if lease, err := l.sides.Enter(ctx, key, write, driver.CheckKey); lease != nil || err != nil {
		return lease, err
	}
	return named(key)(how(ctx, key, kind, l.sides.Side(write)))
}

// Inspect implements [dlock.Inspector]. Of several readers it returns the first one.
func (l *RW) Inspect(ctx context.Context, key string) (dlock.State, error) {
	return l.s.inspect(ctx, key)
}

// ForceRelease implements [dlock.ForceReleaser] for the writer or for all readers.
func (l *RW) ForceRelease(ctx context.Context, key string) error { return l.s.force(ctx, key) }

// Close is that of a [Locker].
func (l *RW) Close(ctx context.Context) error { return l.s.close(ctx) }
