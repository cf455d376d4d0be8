package memlock

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
)

// lease turns a grant into what the caller gets. It does not block, and may run under mu.
func (l *Locker) lease(ctx context.Context, key string, h *hold) *dlock.Lease {
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: h.fence, Sent: h.since, TTL: l.ttl, MaxHold: l.cfg.MaxHold,
		Backend: l, Renewer: l.renewer,
		Release: func(context.Context) error {
			return l.held(key, h.fence, func(e *entry) { l.drop(key, e, e.holder) })
		},
	})
}

// renew is for the Renewer.
func (l *Locker) renew(_ context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	for i, h := range held {
		errs[i] = l.held(h.Key, h.Fence, func(e *entry) { e.holder.until = time.Now().Add(l.ttl) })
	}
	return errs
}

// held runs f if the grant with fence still has key.
func (l *Locker) held(key string, fence dlock.Fence, f func(*entry)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.keys[key]
	switch {
	case !ok || e.holder == nil || e.holder.fence == fence && !time.Now().Before(e.holder.until):
		return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Expired}
	case e.holder.fence != fence:
		return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Taken}
	}
	f(e)
	return nil
}
