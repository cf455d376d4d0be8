package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
)

// rwAttempt is one acquisition. Its id is new, so that asking again is harmless.
type rwAttempt struct {
	key, id     string
	write, wait bool
	asked       bool // whether Redis has answered, so that the id may be queued
}

func (a *rwAttempt) mode() string {
	if a.write {
		return "w"
	}
	return "r"
}

// kind tells the Renewer whose grant it is: readers share the owner of a fence.
func (a *rwAttempt) kind() string {
	if a.write {
		return ""
	}
	return a.id
}

// rwOwner returns the id and the mode of a grant.
func rwOwner(h dlock.Held) (id, mode string) {
	if h.Kind == "" {
		return h.Fence.Owner, "w"
	}
	return h.Kind, "r"
}

// Acquire implements [dlock.Locker] for a writer.
func (l *RW) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.acquire(ctx, key, true)
}

// AcquireRead implements [dlock.RWLocker].
func (l *RW) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.acquire(ctx, key, false)
}

// TryAcquire implements [dlock.Locker] for a writer.
func (l *RW) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.tryAcquire(ctx, key, true)
}

// TryAcquireRead implements [dlock.RWLocker].
func (l *RW) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.tryAcquire(ctx, key, false)
}

func (l *RW) tryAcquire(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if lease, err := l.before(ctx, key, write); lease != nil || err != nil {
		return lease, err
	}
	lease, err := l.ask(ctx, &rwAttempt{key: key, id: l.hub.newID(), write: write})
	if lease == nil && err == nil {
		return nil, fmt.Errorf("redislock: %q: %w", key, dlock.ErrHeld)
	}
	return lease, err
}

func (l *RW) acquire(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if lease, err := l.before(ctx, key, write); lease != nil || err != nil {
		return lease, err
	}
	a := &rwAttempt{key: key, id: l.hub.newID(), write: write, wait: true}
	w := l.hub.join(ctx, l.base(key), a.id)
	defer w.leave()
	again := time.NewTimer(l.recheck)
	defer again.Stop()
	for {
		lease, err := l.ask(ctx, a)
		if lease != nil || err != nil {
			return lease, err
		}
		again.Reset(l.recheck)
		select {
		case pushed := <-w.pushes:
			if lease := l.pushed(ctx, a, pushed); lease != nil {
				return lease, nil
			}
		case <-again.C:
		case <-ctx.Done():
			return nil, l.giveUp(ctx, a)
		}
	}
}

// before answers what needs no question to Redis.
func (l *RW) before(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if ctx.Err() != nil {
		return nil, dlock.Ended(ctx)
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return l.sides.Reenter(ctx, key, write)
}

// ask makes one request. It returns a lease, or an error, or neither: then the
// key is held, and an a that waits has its place in the queue.
func (l *RW) ask(ctx context.Context, a *rwAttempt) (*dlock.Lease, error) {
	request, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	wait := 0
	if a.wait {
		wait = 1
	}
	sent := time.Now()
	reply, err := l.run(request, rwAcquireScript, a.key, a.id, a.mode(), wait, l.hub.stampOf(sent)).StringSlice()
	switch {
	case err == nil:
	case refused(err) && !a.asked:
		return nil, fmt.Errorf("redislock: acquire %q: %w", a.key, inTime(ctx, err))
	default:
		l.abandon(ctx, a)
		return nil, fmt.Errorf("redislock: acquire %q: %w: %w", a.key, dlock.ErrUncertain, inTime(ctx, err))
	}
	a.asked = true
	if len(reply) != 3 {
		return nil, nil //nolint:nilnil // Neither is what the caller asks about.
	}
	fence, err := rwFence(reply[1], reply[2])
	if err != nil {
		l.abandon(ctx, a)
		return nil, fmt.Errorf("redislock: acquire %q: %w", a.key, err)
	}
	return l.lease(ctx, a, fence, sent, 0), nil
}

// pushed returns the lease of a pushed grant, or nil to ask again: if something
// may have been missed, or if the push is so late that little is left of its TTL.
func (l *RW) pushed(ctx context.Context, a *rwAttempt, payload string) *dlock.Lease {
	parts := strings.Fields(payload)
	if len(parts) != 3 {
		return nil
	}
	fence, err := rwFence(parts[0], parts[1])
	sent, ok := l.hub.sent(parts[2])
	if err != nil || !ok || time.Since(sent) > l.first/2 {
		return nil
	}
	return l.lease(ctx, a, fence, sent, l.first)
}

func rwFence(token, owner string) (dlock.Fence, error) {
	n, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		return dlock.Fence{}, fmt.Errorf("fence: %w", err)
	}
	return dlock.Fence{Token: n, Owner: owner}, nil
}

// giveUp leaves the queue, in which a may have been granted the key by now, before
// it returns the error of ctx. If Redis does not answer in time, that goes on in
// the background.
func (l *RW) giveUp(ctx context.Context, a *rwAttempt) error {
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Timeout)
	defer cancel()
	if _, err := l.takeBack(request, a); err != nil {
		l.abandon(ctx, a)
	}
	return dlock.Ended(ctx)
}

// abandon takes back in the background whatever a may have.
func (l *RW) abandon(ctx context.Context, a *rwAttempt) {
	l.undoer.add(ctx, undo{until: time.Now().Add(l.cfg.TTL), run: func(ctx context.Context) (bool, error) {
		return l.takeBack(ctx, a)
	}})
}

func (l *RW) takeBack(ctx context.Context, a *rwAttempt) (found bool, err error) {
	reply, err := l.run(ctx, rwAbandonScript, a.key, a.id).Int64Slice()
	if err != nil {
		return false, err
	}
	l.admit(ctx, a.key, reply[1])
	return reply[0] == 1, nil
}
