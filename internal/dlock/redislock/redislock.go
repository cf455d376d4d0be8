package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

// fenceTTL is how long the last token is remembered. The clock of the server
// makes forgetting it safe; remembering it covers a clock that is set back.
const fenceTTL = 24 * time.Hour

// Config is the configuration of a [Locker].
type Config struct {
	// TTL is how long Redis keeps a grant that is not renewed: the time that a key
	// stays locked after its holder has died. A live holder renews every TTL/3.
	// 0 means 30 s.
	TTL time.Duration

	// Timeout bounds one round trip, and with it how long an attempt goes on after
	// its context was cancelled. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// Retry spreads the attempts of a waiting Acquire.
	Retry dlock.Backoff

	// Prefix begins every key in Redis. Empty means "shop:lock:".
	Prefix string
}

// Locker locks keys in Redis. Close it to wait for what it does in the background.
type Locker struct {
	rdb     redis.UniversalClient
	ttl     time.Duration
	timeout time.Duration
	retry   dlock.Backoff
	prefix  string

	orphans orphans
}

var _ dlock.Locker = (*Locker)(nil)

// New returns a Locker on rdb, which it does not close. It refuses a client that
// repeats commands by itself or ignores deadlines; see the package comment.
func New(rdb redis.UniversalClient, cfg Config) (*Locker, error) {
	ttl := cmp.Or(cfg.TTL, 30*time.Second)
	l := &Locker{
		rdb:     rdb,
		ttl:     ttl,
		timeout: min(cmp.Or(cfg.Timeout, 2*time.Second), ttl/3),
		retry:   cfg.Retry,
		prefix:  cmp.Or(cfg.Prefix, defaultPrefix),
	}
	if ttl < time.Millisecond {
		return nil, fmt.Errorf("redislock: TTL %v is less than a millisecond", ttl)
	}
	if err := checkClient(rdb); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	return l, nil
}

// Acquire implements [dlock.Locker]. It polls.
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	owner := rand.Text()
	return dlock.Poll(ctx, l.retry, func(ctx context.Context) (*dlock.Lease, error) {
		return l.try(ctx, key, owner)
	})
}

// TryAcquire implements [dlock.Locker].
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if ctx.Err() != nil {
		return nil, dlock.Ended(ctx)
	}
	return l.try(ctx, key, rand.Text())
}

// Close waits until every uncertain acquisition has been given back, or its TTL
// has passed, or ctx has ended: then it returns the error of ctx, and the rest
// is left to the TTL. Leases are not released; that is for their holders.
func (l *Locker) Close(ctx context.Context) error { return l.orphans.wait(ctx) }

// try makes one attempt.
func (l *Locker) try(ctx context.Context, key, owner string) (*dlock.Lease, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	attempt, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	sent := time.Now()
	reply, err := acquireScript.Run(attempt, l.rdb, []string{l.lockKey(key), l.fenceKey(key)},
		owner, l.ttl.Milliseconds(), max(fenceTTL, 2*l.ttl).Milliseconds()).Text()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, fmt.Errorf("redislock: %q: %w", key, dlock.ErrHeld)
	case err == nil:
	case refused(err):
		return nil, fmt.Errorf("redislock: acquire %q: %w", key, inTime(ctx, err))
	default:
		l.abandon(ctx, orphan{key: key, owner: owner, until: time.Now().Add(l.ttl)})
		return nil, fmt.Errorf("redislock: acquire %q: %w: %w", key, dlock.ErrUncertain, inTime(ctx, err))
	}
	token, err := strconv.ParseUint(reply, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("redislock: acquire %q: fence: %w", key, err)
	}
	return l.lease(ctx, key, dlock.Fence{Token: token, Owner: owner}, sent), nil
}

func (l *Locker) lease(ctx context.Context, key string, fence dlock.Fence, sent time.Time) *dlock.Lease {
	keys, value := []string{l.lockKey(key)}, fence.Owner+":"+strconv.FormatUint(fence.Token, 10)
	verdict := func(n int, err error) error {
		switch {
		case err != nil:
			return err
		case n == verdictGone:
			return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Expired}
		case n == verdictTaken:
			return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Taken}
		}
		return nil
	}
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: fence, Sent: sent, TTL: l.ttl,
		Extend: func(ctx context.Context) error {
			return verdict(renewScript.Run(ctx, l.rdb, keys, value, l.ttl.Milliseconds()).Int())
		},
		Release: func(ctx context.Context) error {
			return verdict(releaseScript.Run(ctx, l.rdb, keys, value).Int())
		},
	})
}

// refused reports whether err proves that the attempt took nothing: Redis
// answered with an error, or the request never left. The scripts write the lock
// last, so that a script which failed half-way has not taken it.
func refused(err error) bool {
	if _, ok := errors.AsType[redis.Error](err); ok {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// inTime adds the end of ctx to err: the client reports the deadline of a
// context as an i/o timeout, and may do so before ctx itself is done.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(dlock.Ended(ctx), err)
	}
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		return errors.Join(context.DeadlineExceeded, err)
	}
	return err
}
