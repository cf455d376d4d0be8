package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// fenceTTL is how long the last token is remembered. The clock of the server
// makes forgetting it safe; remembering it covers a clock that is set back.
const fenceTTL = 24 * time.Hour

// Locker locks keys in Redis. Close it to wait for what it does in the background.
type Locker struct {
	cfg      Config
	ttl      any   // in ms, as an argument
	common   []any // arguments in the order of queue.lua
	notifier *redisx.Notifier
	calls    *redisx.Caller
	renewals *redisx.Caller // apart, so that a renewal waits for no other call
	renewer  *driver.Renewer

	rollback *driver.Rollback
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.EachLocker    = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
	_ dlock.CounterRaiser = (*Locker)(nil)
)

// New returns a Locker on rdb, which it does not close. It refuses a client that
// repeats commands by itself or ignores deadlines; see the package comment.
func New(rdb redis.UniversalClient, cfg Config) (*Locker, error) {
	if err := errors.Join(cfg.validate(), redisx.Check(rdb)); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	l := &Locker{
		cfg:      cfg,
		calls:    redisx.NewCaller(rdb, cfg.Timeout),
		renewals: redisx.NewCaller(rdb, cfg.Timeout),
	}
	l.notifier = redisx.NewNotifier(rdb, cfg.Prefix, cfg.TTL, l.receive)
	l.ttl = cfg.TTL.Milliseconds()
	l.common = []any{l.fenceTTL(), l.hand().Milliseconds(), l.dead().Microseconds(), l.notifier.Channels()}
	l.rollback = driver.NewRollback(driver.RollbackConfig{
		TTL: max(cfg.TTL, 2*l.dead()), Pause: cfg.Timeout / 4, Timeout: 2 * cfg.Timeout, Revert: l.revert,
	})
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
	return l, nil
}

// Acquire implements [dlock.Locker]. It waits in the queue of key.
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, redisx.CheckKey, key); lease != nil || err != nil {
		return lease, err
	}
	a := l.newAcquisition(key, l.notifier.NewID())
	pushes, leave := l.notifier.Join(ctx, a.id)
	defer leave()
	a.Pushes = pushes
	return a.named(a.Wait(ctx))
}

// TryAcquire implements [dlock.Locker]. It does not overtake a queue.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, redisx.CheckKey, key); lease != nil || err != nil {
		return lease, err
	}
	a := l.newAcquisition(key, l.notifier.NewID())
	return a.named(a.Try(ctx))
}

// Close ends all leases as lost, with the reason [dlock.Closed], and releases them. Then it ends the subscriptions, and
// waits until every uncertain acquisition has been released, or a TTL has passed. If ctx ends first, Close returns
// the error of ctx, and the rest expires by its TTL. Later acquisitions are lost at once.
func (l *Locker) Close(ctx context.Context) error {
	return errors.Join(l.renewer.Close(ctx), l.notifier.Close(ctx), l.rollback.Close(ctx))
}
