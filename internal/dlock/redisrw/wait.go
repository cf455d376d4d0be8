package redisrw

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/rediswait"
	"example.com/shop/internal/redisx"
)

// attempt is one acquisition. Its id is new, so that asking again is harmless.
type attempt struct {
	rediswait.Waiter

	l       *RW
	key, id string
	write   bool
}

func (l *RW) newAttempt(key string, write bool) *attempt {
	a := &attempt{l: l, key: key, id: l.notifier.NewID(), write: write}
	a.Waiter = rediswait.Waiter{
		Attempt: a, Poll: l.poll, TTL: l.cfg.TTL, Timeout: l.cfg.Timeout,
		Held: dlock.Held{Key: key, Fence: dlock.Fence{Owner: a.id}}, Rollback: l.rollback,
	}
	return a
}

func (a *attempt) mode() string {
	if a.write {
		return "w"
	}
	return "r"
}

// acquire takes key, or waits for it.
func (l *RW) acquire(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if lease, err := l.sides.Enter(ctx, key, write, redisx.CheckKey); lease != nil || err != nil {
		return lease, err
	}
	a := l.newAttempt(key, write)
	w := l.notifier.Join(ctx, l.base(key), a.id)
	defer w.Leave()
	a.Pushes = w.Pushes
	return a.named(a.Wait(ctx))
}

// tryAcquire takes key if it can have it at once.
func (l *RW) tryAcquire(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if lease, err := l.sides.Enter(ctx, key, write, redisx.CheckKey); lease != nil || err != nil {
		return lease, err
	}
	a := l.newAttempt(key, write)
	return a.named(a.Try(ctx))
}

// named adds the key to an error.
func (a *attempt) named(lease *dlock.Lease, err error) (*dlock.Lease, error) {
	if err != nil {
		return nil, fmt.Errorf("redisrw: acquire %q: %w", a.key, err)
	}
	return lease, nil
}

// Ask implements [rediswait.Attempt].
func (a *attempt) Ask(ctx context.Context) (*dlock.Lease, time.Duration, error) {
	l := a.l
	call := l.start(ctx, l.calls, acquireScript, a.key, a.id, a.mode(), redisx.Flag(a.Pushes != nil), l.notifier.Stamp(time.Now()))
	reply, sent, err := call.Wait()
	if err != nil {
		return nil, 0, err
	}
	var words [3]string
	all, _ := reply.([]any)
	for i := range min(len(all), len(words)) {
		words[i], _ = all[i].(string)
	}
	switch words[0] {
	case "queued", "held":
		return nil, 0, nil
	case "granted":
		if fence, ok := fenceOf(words[1], words[2]); ok {
			return a.granted(ctx, fence, sent, 0), 0, nil
		}
	}
	return nil, 0, fmt.Errorf("reply %v", reply)
}

// Notified implements [rediswait.Attempt].
func (a *attempt) Notified(ctx context.Context, message string) (*dlock.Lease, error) {
	parts := strings.Fields(message)
	if len(parts) != 3 {
		return nil, nil //nolint:nilnil // Neither: then it asks.
	}
	fence, ok := fenceOf(parts[0], parts[1])
	sent, known := a.l.notifier.Sent(parts[2])
	if !ok || !known || time.Since(sent) > a.l.first/2 {
		return nil, nil //nolint:nilnil // As above.
	}
	return a.granted(ctx, fence, sent, a.l.first), nil
}

func (l *RW) revert(ctx context.Context, held []dlock.Held) (found []bool, err error) {
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

func fenceOf(token, owner string) (dlock.Fence, bool) {
	n, err := strconv.ParseUint(token, 10, 64)
	return dlock.Fence{Token: n, Owner: owner}, err == nil && n > 0
}
