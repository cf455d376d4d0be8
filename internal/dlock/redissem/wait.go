package redissem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// attempt is one call of Acquire or TryAcquire. Its owner is new, so that asking
// again is harmless.
type attempt struct {
	key, owner string
	n          int
	wait       bool
	queued     time.Time // when Redis last confirmed the place in the queue; zero if never
	doubt      bool      // a request was sent and not answered
}

// Acquire implements [dlock.Semaphore]. A failed request costs a waiter nothing
// as long as Redis may still know it.
func (s *Semaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := s.check(ctx, key, n); err != nil {
		return nil, err
	}
	a := &attempt{key: key, owner: s.hub.NewID(), n: n, wait: true}
	w := s.hub.Join(ctx, s.keys(key)[0], a.owner)
	defer w.Leave()
	again := time.NewTimer(s.recheck)
	defer again.Stop()
	for {
		lease, err := s.ask(ctx, a)
		switch {
		case lease != nil:
			return lease, nil
		case errors.Is(err, dlock.ErrInvalidPermits):
			return nil, err
		case err != nil && (ctx.Err() != nil || time.Since(a.queued) > s.ttl):
			return nil, s.failed(ctx, a, err)
		}
		again.Reset(s.recheck*8/10 + rand.N(s.recheck*2/10))
		select {
		case push := <-w.Pushes:
			if lease, err := s.pushed(ctx, a, push); lease != nil || err != nil {
				return lease, err
			}
		case <-again.C:
		case <-ctx.Done():
			return nil, s.failed(ctx, a, nil)
		}
	}
}

// ask makes one request. It returns a lease, or an error, or neither: then the
// permits are held, and an attempt that waits has its place in the queue.
func (s *Semaphore) ask(ctx context.Context, a *attempt) (*dlock.Lease, error) {
	asked := time.Now()
	reply, sent, err := s.run(ctx, acquireScript, a.key,
		a.owner, a.n, redisx.Flag(a.wait), s.epochs.Of(a.key), s.hub.Stamp(asked))
	if err != nil {
		a.doubt = a.doubt || redisx.Uncertain(err)
		return nil, err
	}
	answer := redisx.Strings(reply)
	if len(answer) != 3 {
		return nil, fmt.Errorf("reply %v", reply)
	}
	s.epochs.Set(a.key, answer[1])
	switch answer[0] {
	case "granted":
		return s.granted(ctx, a, answer[2], sent, s.ttl), nil
	case "invalid":
		return nil, a.invalid(answer[2])
	}
	a.queued = asked
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
		if sent, ok := s.hub.Sent(stamp); ok && time.Since(sent) < first/2 {
			return s.granted(ctx, a, token, sent, first), nil
		}
	case "invalid":
		return nil, a.invalid(rest)
	}
	return nil, nil //nolint:nilnil // As ask.
}

func (a *attempt) invalid(limit string) error {
	return fmt.Errorf("redissem: %q: %d of %s: %w", a.key, a.n, limit, dlock.ErrInvalidPermits)
}

// failed ends an attempt that was not granted: by an error, or without one by
// the end of ctx. Whatever Redis has of it, its place in the queue or a grant that
// is on its way, is given back: at once if Redis answers, so that usually nothing
// is left when Acquire returns, and otherwise in the background.
func (s *Semaphore) failed(ctx context.Context, a *attempt, err error) error {
	switch {
	case err == nil:
		err = dlock.Ended(ctx)
	case errors.Is(err, dlock.ErrInvalidPermits):
		return err
	case errors.Is(err, redisx.ErrUnsent), redisx.Refused(err):
		if err = fmt.Errorf("redissem: acquire %q: %w", a.key, driver.InTime(ctx, err)); a.queued.IsZero() {
			return err
		}
	default:
		s.abandon(ctx, a)
		return fmt.Errorf("redissem: acquire %q: %w: %w", a.key, dlock.ErrUncertain, driver.InTime(ctx, err))
	}
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout/4)
	defer cancel()
	if _, _, failed := s.run(request, abandonScript, a.key, a.owner); failed != nil {
		s.abandon(ctx, a)
		return fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
	}
	if a.doubt {
		s.abandon(ctx, a) // that request may be on its way yet
	}
	return err
}

// abandon takes back in the background whatever a may have.
func (s *Semaphore) abandon(ctx context.Context, a *attempt) {
	s.undo.Add(ctx, dlock.Held{Key: a.key, Fence: dlock.Fence{Owner: a.owner}})
}

func (s *Semaphore) giveBack(ctx context.Context, held []dlock.Held) ([]bool, error) {
	calls := make([]*redisx.Call, len(held))
	for i, h := range held {
		calls[i] = s.calls.Start(ctx, abandonScript, s.keys(h.Key), s.args(h.Key, h.Fence.Owner)...)
	}
	return redisx.Found(calls)
}
