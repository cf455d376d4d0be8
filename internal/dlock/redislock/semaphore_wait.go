package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
)

// attempt is one call of Acquire or TryAcquire. Its owner is new, so that asking
// again is harmless.
type attempt struct {
	key, owner string
	n          int
	wait       bool
	asked      bool // once at least
}

// Acquire implements [dlock.Semaphore].
func (s *Semaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := s.check(ctx, key, n); err != nil {
		return nil, err
	}
	a := attempt{key: key, owner: s.hub.newID(), n: n, wait: true}
	w := s.hub.join(ctx, s.keys(key)[0], a.owner)
	defer w.leave()
	again := time.NewTimer(s.recheck)
	defer again.Stop()
	for {
		lease, err := s.ask(ctx, &a)
		if lease != nil || err != nil {
			return lease, err
		}
		again.Reset(s.recheck)
		select {
		case push := <-w.pushes:
			if lease, err := s.pushed(ctx, &a, push); lease != nil || err != nil {
				return lease, err
			}
		case <-again.C:
		case <-ctx.Done():
			return nil, s.giveUp(ctx, &a)
		}
	}
}

// ask makes one request. It returns a lease, or an error, or neither: then the
// permits are held, and a that waits has its place in the queue.
func (s *Semaphore) ask(ctx context.Context, a *attempt) (*dlock.Lease, error) {
	request, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	sent, wait := time.Now(), 0
	if a.wait {
		wait = 1
	}
	reply, err := s.run(request, semaphoreAcquireScript, a.key,
		a.owner, a.n, wait, s.epochs.of(a.key), s.hub.stampOf(sent)).StringSlice()
	switch {
	case err == nil && len(reply) == 3:
	case err == nil:
		return nil, fmt.Errorf("redislock: acquire %q: answer %q", a.key, reply)
	case refused(err):
		if a.asked {
			s.abandon(ctx, a)
		}
		return nil, fmt.Errorf("redislock: acquire %q: %w", a.key, inTime(ctx, err))
	default:
		s.abandon(ctx, a)
		return nil, fmt.Errorf("redislock: acquire %q: %w: %w", a.key, dlock.ErrUncertain, inTime(ctx, err))
	}
	a.asked = true
	s.epochs.set(a.key, reply[1])
	switch reply[0] {
	case "granted":
		return s.granted(ctx, a, reply[2], sent, s.ttl)
	case "invalid":
		return nil, a.invalid(reply[2])
	}
	return nil, nil //nolint:nilnil // Neither is what the caller asks about.
}

// pushed reads what pump pushes. A grant that was on its way for too long is
// asked about again.
func (s *Semaphore) pushed(ctx context.Context, a *attempt, push string) (*dlock.Lease, error) {
	what, rest, _ := strings.Cut(push, " ")
	switch what {
	case "granted":
		token, stamp, _ := strings.Cut(rest, " ")
		first := min(s.ttl, s.patience())
		if sent, ok := s.hub.sent(stamp); ok && time.Since(sent) < first/2 {
			return s.granted(ctx, a, token, sent, first)
		}
	case "invalid":
		return nil, a.invalid(rest)
	}
	return nil, nil //nolint:nilnil // As ask.
}

func (a *attempt) invalid(limit string) error {
	return fmt.Errorf("redislock: %q: %d of %s: %w", a.key, a.n, limit, dlock.ErrInvalidPermits)
}

// granted turns a grant into what the caller gets.
func (s *Semaphore) granted(ctx context.Context, a *attempt, token string, sent time.Time, first time.Duration) (*dlock.Lease, error) {
	n, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		s.abandon(ctx, a)
		return nil, fmt.Errorf("redislock: acquire %q: fence: %w", a.key, err)
	}
	fence := dlock.Fence{Token: n, Owner: a.owner}
	return dlock.NewLease(ctx, dlock.Grant{
		Key: a.key, Fence: fence, Kind: strconv.Itoa(a.n), Sent: sent, First: first, TTL: s.ttl, Renewer: s.renewer,
		Release: func(ctx context.Context) error {
			live, err := s.run(ctx, semaphoreReleaseScript, a.key, fence.Owner, fence.Token, a.n).Int()
			if err == nil && live == 0 {
				return dlock.ErrLost
			}
			return err
		},
	}), nil
}

// giveUp leaves the queue, in which a may have been granted its permits by now,
// before it returns the error of ctx. If Redis does not answer in time, that goes
// on in the background.
func (s *Semaphore) giveUp(ctx context.Context, a *attempt) error {
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	if s.run(request, semaphoreAbandonScript, a.key, a.owner).Err() != nil {
		s.abandon(ctx, a)
	}
	return dlock.Ended(ctx)
}

// abandon takes back in the background whatever a may have.
func (s *Semaphore) abandon(ctx context.Context, a *attempt) {
	s.undoer.add(ctx, undo{until: time.Now().Add(s.ttl), run: func(ctx context.Context) (bool, error) {
		n, err := s.run(ctx, semaphoreAbandonScript, a.key, a.owner).Int()
		return n == 1, err
	}})
}
