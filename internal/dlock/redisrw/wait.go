package redisrw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// attempt is one acquisition. Its id is new, so that asking again is harmless.
type attempt struct {
	key, id     string
	write, wait bool
	queued      time.Time // when Redis last confirmed the place in the queue; zero if never
	doubt       bool      // a request was sent and not answered
}

func (a *attempt) mode() string {
	if a.write {
		return "w"
	}
	return "r"
}

// acquire takes key, or waits for it. A failed request costs a waiter nothing as
// long as Redis may still know it.
func (l *RW) acquire(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if lease, err := l.before(ctx, key, write); lease != nil || err != nil {
		return lease, err
	}
	a := &attempt{key: key, id: l.hub.NewID(), write: write, wait: true}
	w := l.hub.Join(ctx, l.base(key), a.id)
	defer w.Leave()
	again := time.NewTimer(l.recheck)
	defer again.Stop()
	for {
		lease, err := l.ask(ctx, a)
		switch {
		case lease != nil:
			return lease, nil
		case err != nil && (ctx.Err() != nil || time.Since(a.queued) > l.cfg.TTL):
			return nil, l.failed(ctx, a, err)
		}
		again.Reset(l.recheck*8/10 + rand.N(l.recheck*2/10))
		select {
		case push := <-w.Pushes:
			if lease := l.pushed(ctx, a, push); lease != nil {
				return lease, nil
			}
		case <-again.C:
		case <-ctx.Done():
			return nil, l.failed(ctx, a, nil)
		}
	}
}

// ask makes one request. It returns a lease, or an error, or neither: then the
// key is held, and an a that waits has its place in the queue.
func (l *RW) ask(ctx context.Context, a *attempt) (*dlock.Lease, error) {
	wait, now := 0, time.Now()
	if a.wait {
		wait = 1
	}
	reply, sent, err := l.start(ctx, l.calls, acquireScript, a.key, a.id, a.mode(), wait, l.hub.Stamp(now)).Wait()
	if err != nil {
		a.doubt = a.doubt || redisx.Uncertain(err)
		return nil, err
	}
	if a.wait {
		a.queued = now
	}
	var words [3]string
	all, _ := reply.([]any)
	for i := range min(len(all), len(words)) {
		words[i], _ = all[i].(string)
	}
	switch words[0] {
	case "queued", "held":
		return nil, nil //nolint:nilnil // Neither is what the caller asks about.
	case "granted":
		if fence, ok := fenceOf(words[1], words[2]); ok {
			return l.lease(ctx, a, fence, sent, 0), nil
		}
	}
	return nil, fmt.Errorf("reply %v", reply)
}

// failed returns the error of an acquisition that ends here, and takes back what
// it has or may have in Redis: its place in the queue, or a grant that is on its
// way. The cause is nil if it is merely the end of ctx. It waits for Redis for a
// moment, so that usually nothing is left when Acquire returns.
func (l *RW) failed(ctx context.Context, a *attempt, cause error) error {
	waits := !a.queued.IsZero()
	switch {
	case cause == nil:
	case errors.Is(cause, redisx.ErrUnsent) && !waits:
		return dlock.Ended(ctx)
	case redisx.Refused(cause) && !waits:
		return fmt.Errorf("redisrw: acquire %q: %w", a.key, driver.InTime(ctx, cause))
	}
	if waits && (cause == nil || ctx.Err() != nil) {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.Timeout/4)
		defer cancel()
		found, err := l.takeBack(soon, a)
		if err == nil && (found || cause == nil || errors.Is(cause, redisx.ErrUnsent)) {
			if a.doubt {
				l.abandon(ctx, a) // that request may be on its way yet
			}
			return dlock.Ended(ctx)
		}
	}
	l.abandon(ctx, a)
	if cause == nil {
		cause = dlock.Ended(ctx)
	}
	return fmt.Errorf("redisrw: acquire %q: %w: %w", a.key, dlock.ErrUncertain, driver.InTime(ctx, cause))
}

// abandon takes back in the background whatever a may have.
func (l *RW) abandon(ctx context.Context, a *attempt) {
	l.undo.Add(ctx, dlock.Held{Key: a.key, Fence: dlock.Fence{Owner: a.id}})
}

func (l *RW) giveBack(ctx context.Context, held []dlock.Held) (found []bool, err error) {
	calls := make([]*redisx.Call, len(held))
	for i, h := range held {
		calls[i] = l.start(ctx, l.calls, abandonScript, h.Key, h.Fence.Owner)
	}
	found = make([]bool, len(held))
	for i, h := range held {
		reply, failed := calls[i].Ints(2)
		if failed != nil {
			err = failed
			continue
		}
		found[i] = reply[0] == 1
		l.admit(ctx, h.Key, reply[1])
	}
	return found, err
}

// takeBack takes back at once whatever a may have.
func (l *RW) takeBack(ctx context.Context, a *attempt) (found bool, err error) {
	all, err := l.giveBack(ctx, []dlock.Held{{Key: a.key, Fence: dlock.Fence{Owner: a.id}}})
	return all[0], err
}

// pushed returns the lease of a pushed grant, or nil to ask again: if something
// may have been missed, or if the push is so late that little is left of its TTL.
func (l *RW) pushed(ctx context.Context, a *attempt, payload string) *dlock.Lease {
	parts := strings.Fields(payload)
	if len(parts) != 3 {
		return nil
	}
	fence, ok := fenceOf(parts[0], parts[1])
	sent, known := l.hub.Sent(parts[2])
	if !ok || !known || time.Since(sent) > l.first/2 {
		return nil
	}
	return l.lease(ctx, a, fence, sent, l.first)
}

func fenceOf(token, owner string) (dlock.Fence, bool) {
	n, err := strconv.ParseUint(token, 10, 64)
	return dlock.Fence{Token: n, Owner: owner}, err == nil && n > 0
}
