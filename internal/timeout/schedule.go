package timeout

import (
	"context"
	"fmt"
	"time"
)

// Schedule stores timers in the caller's transaction, or, if tx is nil, in a transaction of its own. A timer
// that is stored already gets the new due time, and is open again with no attempts.
//
// The caller calls push after the commit. Push queues the entries of timers that are due in the window, by the clock of this
// process; the others need none yet. If that clock is far behind, the overdue scan finds them. Push does not block and cannot fail. If it is not called, the timers may fire late. If it is called after a
// rollback, a claim finds no row.
//
// Schedule blocks for the database. It fails with [ErrInvalid] before anything has
// changed; after any other error the caller rolls back.
func (q *Queue) Schedule(ctx context.Context, tx Tx, timers ...Timer) (push func(), err error) {
	checked := make([]Timer, 0, len(timers))
	for _, t := range timers {
		if err = checkID(t.Kind, t.ID); err == nil {
			t.Due, err = checkDue(t.Kind, t.ID, t.Due)
		}
		if err != nil {
			return nothing, fmt.Errorf("timeout: schedule: %w", err)
		}
		checked = append(checked, t)
	}
	if len(checked) == 0 {
		return nothing, nil
	}
	if err := q.store.Insert(ctx, tx, q.cfg.Partition, q.cfg.Trace(ctx), checked); err != nil {
		return nothing, fmt.Errorf("timeout: schedule %d timers: %w", len(checked), err)
	}
	var entries []pushed
	now := time.Now()
	for _, t := range checked {
		q.observer.Scheduled(t.Kind, 1)
		if q.soon(t.Due, now) {
			entries = append(entries, pushed{shardKey{t.Kind, q.cfg.Partition}, Entry{ID: t.ID, At: t.Due}})
		}
	}
	if len(entries) == 0 {
		return nothing, nil
	}
	return func() { q.push(entries) }, nil
}

// Cancel deletes timers, open or dead, in the caller's transaction, or, if tx is nil, in a transaction of
// its own. A timer that does not exist is no error. A handler that is running for a timer is not
// stopped: its own rows decide. An index entry stays, and a claim finds no row. Errors are as with [Queue.Schedule].
func (q *Queue) Cancel(ctx context.Context, tx Tx, kind string, ids ...string) error {
	for _, id := range ids {
		if err := checkID(kind, id); err != nil {
			return fmt.Errorf("timeout: cancel: %w", err)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := q.store.Delete(ctx, tx, kind, ids, nil); err != nil {
		return fmt.Errorf("timeout: cancel %d %s timers: %w", len(ids), kind, err)
	}
	return nil
}

// Reschedule gives a timer another due time and no attempts, in the caller's transaction, or, if tx is
// nil, in a transaction of its own. A dead timer is open again. It fails with [ErrNotFound] if the timer has
// been cancelled or handled. Push and other errors are as with [Queue.Schedule].
func (q *Queue) Reschedule(ctx context.Context, tx Tx, kind, id string, due time.Time) (push func(), err error) {
	if err := checkID(kind, id); err != nil {
		return nothing, fmt.Errorf("timeout: reschedule: %w", err)
	}
	if due, err = checkDue(kind, id, due); err != nil {
		return nothing, fmt.Errorf("timeout: reschedule: %w", err)
	}
	row, err := q.store.Move(ctx, tx, kind, id, due)
	if err != nil {
		return nothing, fmt.Errorf("timeout: reschedule %s timer %q: %w", kind, id, err)
	}
	if !q.soon(row.Next, time.Now()) {
		return nothing, nil
	}
	return func() { q.push([]pushed{{shardKey{kind, row.Partition}, Entry{ID: id, At: row.Next}}}) }, nil
}

func nothing() {}
