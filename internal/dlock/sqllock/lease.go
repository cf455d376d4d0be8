package sqllock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
)

// lease turns a grant into what the caller gets. ended is called when the grant is over, and may
// be nil.
func (l *Locker) lease(ctx context.Context, key string, f dlock.Fence, sent time.Time, ended func(error)) *dlock.Lease {
	held := dlock.Held{Key: key, Fence: f}
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: f, Sent: sent, TTL: l.cfg.TTL, MaxHold: l.cfg.MaxHold,
		Backend: l, Renewer: l.renewer,
		Release: func(ctx context.Context) error { return l.release(ctx, held) },
		Ended:   ended,
	})
}

// release releases held.
func (l *Locker) release(ctx context.Context, held dlock.Held) error {
	n, err := l.exec(ctx, l.sql.release, held.Key, held.Fence.Owner, held.Fence.Token)
	switch {
	case err != nil:
		l.abandon(ctx, held.Key, held.Fence.Owner) // the statement may have been lost
		return err
	case n > 0:
		return nil
	}
	rows, err := l.rows(ctx, []string{held.Key})
	if err != nil { // what is certain is the loss
		return &dlock.LostError{Key: held.Key, Fence: held.Fence, Reason: dlock.Expired}
	}
	return cmp.Or(rows[held.Key].verdict(held), error(&dlock.LostError{Key: held.Key, Fence: held.Fence, Reason: dlock.Expired}))
}

// renew is for the Renewer: one statement for all, and another one only if some are lost.
func (l *Locker) renew(ctx context.Context, held []dlock.Held) []error {
	ordered := slices.SortedFunc(slices.Values(held), func(a, b dlock.Held) int { return cmp.Compare(a.Key, b.Key) })
	args, keys := []any{l.cfg.TTL.Microseconds()}, make([]string, 0, len(held))
	for _, h := range ordered { // in the order of the keys, as everybody locks rows
		f := h.Fence
		args = append(args, h.Key, f.Owner, f.Token)
		keys = append(keys, h.Key)
	}
	errs := make([]error, len(held))
	n, err := l.exec(ctx, l.sql.renew+anyOf(keeps, len(held)), args...)
	if err == nil && n == len(held) {
		return errs
	}
	var rows map[string]row
	if err == nil {
		rows, err = l.rows(ctx, keys)
	}
	for i, h := range held {
		if err != nil {
			errs[i] = fmt.Errorf("sqllock: renew: %w", err)
			continue
		}
		// A row that has this owner now had it at the renewal: a lease that has expired never becomes valid again.
		errs[i] = rows[h.Key].verdict(h)
	}
	return errs
}

// verdict is what the row of a key says of a grant: nil if it holds.
func (r row) verdict(h dlock.Held) error {
	lost := &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired}
	switch {
	case r.fence == h.Fence && r.left > 0:
		return nil
	case r.forced == h.Fence.Token:
		lost.Reason = dlock.Forced
	case r.fence.Token > h.Fence.Token:
		lost.Reason = dlock.Taken
	}
	return lost
}
