package memlock

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
)

// lease turns a grant into what the caller gets. It does not block, and may run under mu.
func (l *RW) lease(ctx context.Context, key string, write bool, g grant) *dlock.Lease {
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: g.fence, Sent: g.sent, TTL: l.ttl, MaxHold: l.cfg.MaxHold,
		Kind: g.id, Backend: l.sides.Side(write), NoReentry: l.cfg.NoReentry, Renewer: l.renewer,
		Release: func(context.Context) error {
			return l.held(key, g.fence, g.id, func(e *entry, h *hold) { l.drop(key, e, h) })
		},
	})
}

// renew is for the Renewer.
func (l *RW) renew(_ context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	for i, h := range held {
		errs[i] = l.held(h.Key, h.Fence, h.Kind, func(_ *entry, g *hold) { g.until = time.Now().Add(l.ttl) })
	}
	return errs
}

// held runs f if the grant id still has key.
func (l *RW) held(key string, fence dlock.Fence, id string, f func(*entry, *hold)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.keys[key]; ok {
		for h := range e.holds {
			switch {
			case h.id == id && time.Now().Before(h.until):
				f(e, h)
				return nil
			case h.id != id && h == e.writer:
				return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Taken}
			}
		}
	}
	return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Expired}
}
