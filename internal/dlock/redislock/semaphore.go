package redislock

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

// maxWeight bounds what one lease can hold: a script touches every permit of it.
const maxWeight = 1024

// SemaphoreConfig is the configuration of a [Semaphore].
type SemaphoreConfig struct {
	// Permits is how many permits each key has, until it is resized. 0 means 1.
	// Clients of one store should agree on it: each grants by its own number.
	Permits int

	// TTL is how long Redis keeps a grant that is not renewed: the time until the
	// permits of a holder that has died are back. 0 means 30 s.
	TTL time.Duration

	// Timeout bounds one round trip, and with it how long an attempt goes on after
	// its context was cancelled. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// Prefix begins every key in Redis. Empty means "shop:sem:".
	Prefix string
}

// Semaphore is [dlock.Semaphore] in Redis.
type Semaphore struct {
	permits int
	ttl     time.Duration
	timeout time.Duration
	recheck time.Duration // how often a waiter asks again
	prefix  string
	epochs  epochs
	hub     *hub
	calls   *batcher
	renewer *dlock.Renewer

	renewals *batcher // apart, so that a renewal waits for no other call
	undoer   undoer
}

var (
	_ dlock.Semaphore = (*Semaphore)(nil)
	_ dlock.Resizer   = (*Semaphore)(nil)
)

// NewSemaphore returns a Semaphore on rdb, which it does not close. It refuses
// the clients that [New] refuses.
func NewSemaphore(rdb redis.UniversalClient, cfg SemaphoreConfig) (*Semaphore, error) {
	ttl := cmp.Or(cfg.TTL, 30*time.Second)
	timeout := min(cmp.Or(cfg.Timeout, 2*time.Second), ttl/3)
	s := &Semaphore{
		permits: cmp.Or(cfg.Permits, 1),
		ttl:     ttl,
		timeout: timeout,
		recheck: min(time.Second, ttl/4),
		prefix:  cmp.Or(cfg.Prefix, semaphorePrefix),
		undoer:  undoer{timeout: timeout},
		calls:   newBatcher(rdb, timeout),

		renewals: newBatcher(rdb, timeout),
	}
	if ttl < time.Millisecond {
		return nil, fmt.Errorf("redislock: TTL %v is less than a millisecond", ttl)
	}
	if s.permits < 1 {
		return nil, fmt.Errorf("redislock: %d permits: %w", cfg.Permits, dlock.ErrInvalidPermits)
	}
	if err := checkClient(rdb); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	s.hub = newHub(rdb, s.prefix, nil)
	s.renewer = dlock.NewRenewer(dlock.RenewerConfig{TTL: ttl, Renew: s.renew})
	return s, nil
}

// TryAcquire implements [dlock.Semaphore].
func (s *Semaphore) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := s.check(ctx, key, n); err != nil {
		return nil, err
	}
	a := &attempt{key: key, owner: s.hub.newID(), n: n}
	lease, err := s.ask(ctx, a)
	switch {
	case err != nil:
		return nil, s.failed(ctx, a, err)
	case lease == nil:
		return nil, fmt.Errorf("redislock: %d permits of %q: %w", n, key, dlock.ErrHeld)
	}
	return lease, nil
}

// Resize implements [dlock.Resizer]. Redis keeps the number until it is resized
// again, or loses its data.
func (s *Semaphore) Resize(ctx context.Context, key string, permits int) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if permits < 1 {
		return fmt.Errorf("redislock: resize %q to %d: %w", key, permits, dlock.ErrInvalidPermits)
	}
	if _, _, err := s.run(ctx, semaphoreResizeScript, key, permits); err != nil {
		return fmt.Errorf("redislock: resize %q: %w", key, inTime(ctx, err))
	}
	return nil
}

// Close waits until every uncertain acquisition has been given back, or its TTL
// has passed, or ctx has ended: then it returns the error of ctx, and the rest
// is left to the TTL. It ends the subscription, without which those who still
// wait are slower. Leases are not released; that is for their holders.
func (s *Semaphore) Close(ctx context.Context) error {
	s.hub.close()
	return s.undoer.wait(ctx)
}

// check refuses what no number of permits could allow, before anything is sent.
func (s *Semaphore) check(ctx context.Context, key string, n int) error {
	if ctx.Err() != nil {
		return dlock.Ended(ctx)
	}
	if err := checkKey(key); err != nil {
		return err
	}
	if err := dlock.CheckPermits(key, n, maxWeight); err != nil {
		return fmt.Errorf("redislock: %w", err)
	}
	return nil
}

// patience is how long the store believes in a waiter that does not ask again,
// and in a grant that was pushed and not renewed.
func (s *Semaphore) patience() time.Duration { return 3*s.recheck + s.timeout }

// run makes one call of a script about key.
func (s *Semaphore) run(ctx context.Context, script script, key string, args ...any) (any, time.Time, error) {
	return s.calls.run(ctx, script, s.keys(key), s.args(key, args...)...)
}

// args are args after those that all scripts have in common.
func (s *Semaphore) args(key string, args ...any) []any {
	return append([]any{
		s.permits, s.ttl.Milliseconds(), s.patience().Milliseconds(),
		s.hub.command(), s.hub.channels(s.keys(key)[0]),
	}, args...)
}
