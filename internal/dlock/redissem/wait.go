package redissem

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/dlock/rediswait"
	"example.com/shop/internal/platform/redisx"
)

// attempt is one call of Acquire or TryAcquire. Its owner is new, so that asking
// again is harmless.
type attempt struct {
	rediswait.Waiter

	s          *Semaphore
	key, owner string
	n          int
}

func (s *Semaphore) newAttempt(key string, n int) *attempt {
	a := &attempt{s: s, key: key, owner: s.notifier.NewID(), n: n}
	a.Waiter = rediswait.Waiter{
		Attempt: a, Poll: s.poll, TTL: s.ttl, Timeout: s.timeout,
		Held: dlock.Held{Key: key, Fence: dlock.Fence{Owner: a.owner}}, Rollback: s.rollback,
	}
	return a
}

// Acquire implements [dlock.Semaphore].
func (s *Semaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := check(ctx, key, n); err != nil {
		return nil, err
	}
	a := s.newAttempt(key, n)
	pushes, leave := s.notifier.Join(ctx, a.owner)
	defer leave()
	a.Pushes = pushes
	return a.named(a.Wait(ctx))
}

// TryAcquire implements [dlock.Semaphore].
func (s *Semaphore) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := check(ctx, key, n); err != nil {
		return nil, err
	}
	a := s.newAttempt(key, n)
	return a.named(a.Try(ctx))
}

// check refuses an acquisition that cannot begin.
func check(ctx context.Context, key string, n int) error {
	if ctx.Err() != nil {
		return dlock.Ended(ctx)
	}
	return cmp.Or(redisx.CheckKey(key), driver.CheckPermits(key, n, maxWeight))
}

// named adds to an error what was asked for.
func (a *attempt) named(lease *dlock.Lease, err error) (*dlock.Lease, error) {
	if err != nil {
		return nil, fmt.Errorf("redissem: acquire %d of %q: %w", a.n, a.key, err)
	}
	return lease, nil
}

// Ask implements [rediswait.Attempt].
func (a *attempt) Ask(ctx context.Context) (*dlock.Lease, time.Duration, error) {
	s, wait := a.s, 0
	if a.Pushes != nil {
		wait = 1
	}
	reply, sent, err := s.run(ctx, acquireScript, a.key,
		a.owner, a.n, wait, s.epochs.of(a.key), s.notifier.Stamp(time.Now()))
	if err != nil {
		return nil, 0, err
	}
	answer, _ := reply.([]any)
	if len(answer) != 3 {
		return nil, 0, fmt.Errorf("reply %v", reply)
	}
	s.epochs.set(a.key, fmt.Sprint(answer[1]))
	switch answer[0] {
	case "granted":
		return a.granted(ctx, fmt.Sprint(answer[2]), sent, s.ttl), 0, nil
	case "invalid":
		return nil, 0, a.invalid(fmt.Sprint(answer[2]))
	}
	return nil, 0, nil
}

// Notified implements [rediswait.Attempt].
func (a *attempt) Notified(ctx context.Context, message string) (*dlock.Lease, error) {
	what, rest, _ := strings.Cut(message, " ")
	switch what {
	case "granted":
		token, stamp, _ := strings.Cut(rest, " ")
		first := a.s.waiterTTL() * 3 / 2
		if sent, ok := a.s.notifier.Sent(stamp); ok && time.Since(sent) < first/2 {
			return a.granted(ctx, token, sent, first), nil
		}
	case "invalid":
		return nil, a.invalid(rest)
	}
	return nil, nil //nolint:nilnil // Neither: then it asks.
}

func (a *attempt) invalid(limit string) error {
	return fmt.Errorf("there are %s: %w", limit, dlock.ErrInvalidPermits)
}

func (s *Semaphore) revert(ctx context.Context, h dlock.Held) (bool, error) {
	reply, _, err := s.run(ctx, abandonScript, h.Key, h.Fence.Owner)
	return reply == int64(1), err
}
