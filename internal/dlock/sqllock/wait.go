package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/sqldb"
)

// waiter waits for a key that another owner has.
type waiter struct {
	l         *Locker
	key, id   string
	uncertain error     // of an attempt of its own whose outcome is unknown
	answer    time.Time // when the database answered for the last time
}

// wait polls until id has key, or ctx ends, or the database has not answered for a TTL. A poll only reads. So it
// delays neither the holder's renewals and release nor, on SQLite, any other writer.
func (l *Locker) wait(ctx context.Context, key, id string) (*dlock.Lease, error) {
	w := &waiter{l: l, key: key, id: id, answer: time.Now()}
	next := time.NewTimer(0)
	defer next.Stop()
	for prev := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil, w.leave(ctx, dlock.Ended(ctx))
		case <-next.C:
		}
		lease, left, err := w.poll(ctx)
		switch {
		case lease != nil:
			return lease, nil
		case err == nil:
			w.answer = time.Now()
		case ctx.Err() != nil || hopeless(err) || time.Since(w.answer) > l.cfg.TTL:
			return nil, w.leave(ctx, err)
		}
		prev = l.pauses.Next(prev)
		next.Reset(min(prev, left))
	}
}

// hopeless reports whether err says that the statement is wrong, its table missing, or that nothing may be written.
func hopeless(err error) bool {
	return sqldb.Unchanged(err) && !sqldb.Transient(err) && !sqldb.Broken(err)
}

// poll takes the key if it is free, or if an attempt that seemed to fail has taken it.
// Otherwise it returns how long the present lease lasts if it is not renewed.
func (w *waiter) poll(ctx context.Context) (*dlock.Lease, time.Duration, error) {
	rows, err := w.l.rows(ctx, []string{w.key})
	if err != nil {
		return nil, w.l.cfg.TTL, err
	}
	if r, ok := rows[w.key]; ok && r.left > 0 && r.fence.Owner != w.id {
		return nil, max(r.left, time.Millisecond), nil
	}
	token, sent, err := w.l.attempt(ctx, w.key, w.id)
	switch {
	case errors.Is(err, dlock.ErrUncertain):
		w.uncertain = err
		return nil, w.l.cfg.TTL, err
	case err != nil, token == 0:
		return nil, w.l.cfg.TTL, err
	}
	var ended func(error)
	if w.uncertain != nil { // that attempt may arrive when the key has been released, and take it again
		values := context.WithoutCancel(ctx)
		ended = func(error) { w.l.abandon(values, w.key, w.id) }
	}
	return w.l.lease(ctx, w.key, dlock.Fence{Token: token, Owner: w.id}, sent, ended), 0, nil
}

// leave ends the wait with err, and releases what an attempt may have taken.
func (w *waiter) leave(ctx context.Context, err error) error {
	if w.uncertain == nil {
		if ctx.Err() != nil {
			return dlock.Ended(ctx)
		}
		return err
	}
	w.l.abandon(ctx, w.key, w.id)
	if errors.Is(err, dlock.ErrUncertain) {
		return err
	}
	return fmt.Errorf("sqllock: acquire %q: %w: %w", w.key, dlock.ErrUncertain, errors.Join(err, w.uncertain))
}
