package sqlstore

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqldb"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// place checks the limits and changes the stock rows in the order of the claims. Then it stores the orders that have
// all their units. A basket that is short of any unit changes nothing.
func (b *transaction) place(tx *gorm.DB) error {
	n := len(b.requests)
	b.failed = make([]error, len(b.batches))
	b.refused, b.shortages, b.answers = make([]error, n), make([][]stock.Shortage, n), make(map[int]idempotency.Answer)
	b.push, b.end, b.notify = func() {}, script{}, nil
	if err := b.countUsage(tx); err != nil {
		return err
	}
	if err := b.lockQueued(tx); err != nil {
		return err
	}
	eligible := 0
	for i := range b.requests {
		if b.eligible(i) {
			eligible++
		}
	}
	if eligible == 0 {
		return errRefused
	}
	if err := b.reserve(tx); err != nil {
		return err
	}
	return b.store(tx)
}

// eligible reports whether request i still asks for units: it is within its limits, and no earlier request has placed
// the same order.
func (b *transaction) eligible(i int) bool {
	if b.firstDuplicate(i) >= 0 || b.failed[b.of[i]] != nil {
		return false
	}
	if b.refused[i] == nil {
		b.refused[i] = b.over(b.requests[i])
	}
	return b.refused[i] == nil
}

// fulfilled reports whether request i has got all that it asked for.
func (b *transaction) fulfilled(i int) bool {
	return b.refused[i] == nil && len(b.shortages[i]) == 0 && b.failed[b.of[i]] == nil
}

// firstDuplicate returns the first of the requests before i with the same key that has got all it asked for,
// or -1. Its order is that of the others.
func (b *transaction) firstDuplicate(i int) int {
	first := -1
	for j := b.duplicates[i]; j >= 0; j = b.duplicates[j] {
		if b.fulfilled(j) {
			first = j
		}
	}
	return first
}

// isAccepted reports whether the order of request i is stored.
func (b *transaction) isAccepted(i int) bool { return b.fulfilled(i) && b.firstDuplicate(i) < 0 }

// store stores the orders that are granted, and what belongs to them.
func (b *transaction) store(tx *gorm.DB) (err error) {
	var (
		accepted, added []order.Order
		dequeued        []string
		answers         []answer
	)
	var fences []map[string]dlock.Fence // of each accepted order, by SKU
	for i, r := range b.requests {
		if !b.isAccepted(i) {
			continue
		}
		o := b.accepted(r)
		accepted, fences = append(accepted, o), append(fences, b.fences(b.of[i]))
		if r.Key != nil {
			a, err := idempotency.Result(o)
			if err != nil {
				return err
			}
			b.answers[i] = a
			answers = append(answers, answer{r.Key, a})
		}
		if r.Queued {
			dequeued = append(dequeued, o.ID)
			b.dequeue(o)
			continue
		}
		added = append(added, o)
	}
	if len(accepted) == 0 {
		return errRefused
	}
	b.end.orders(added)
	b.end.ledger(b.Store, stock.Reserve, accepted, b.now, fences)
	if err := b.time(tx.Statement.Context, accepted, dequeued); err != nil {
		return err
	}
	if err := b.end.answers(b.Store, answers); err != nil {
		return err
	}
	if b.shared() && len(answers) > 0 {
		last := len(b.end.texts) - 1
		b.end.texts[last] = b.dialect.within(b.end.texts[last], b.wait)
	}
	err = b.run(tx, &b.end)
	if b.shared() && (sqldb.Late(err) || sqldb.LockTimeout(err)) {
		return fmt.Errorf("%w: %v", errKeyLocked, err) //nolint:errorlint // it is not to be repeated like another one
	}
	return err
}

// fences returns the fencing tokens of a batch by SKU.
func (b *transaction) fences(batch int) map[string]dlock.Fence {
	fences := make(map[string]dlock.Fence)
	for _, c := range b.batches[batch].Claims {
		fences[c.SKU] = c.Fence
	}
	return fences
}

// time gives the orders that are accepted their timers, and deletes those of the queue.
func (b *transaction) time(ctx context.Context, accepted []order.Order, dequeued []string) error {
	timers := make([]timeout.Timer, len(accepted))
	for i, o := range accepted {
		timers[i] = o.Timer()
	}
	scheduled, err := b.timers.Schedule(ctx, &b.end, timers...)
	if err != nil {
		return err
	}
	cancelled, err := b.timers.Cancel(ctx, &b.end, order.PlaceTimer, dequeued...)
	if err != nil {
		return err
	}
	b.push = func() {
		scheduled()
		cancelled()
	}
	return nil
}

// answer fills in the requests after the transaction, and the batches that failed.
func (b *transaction) answer() {
	for i, err := range b.failed {
		b.batches[i].Err = err
	}
	for i, r := range b.requests {
		if b.failed[b.of[i]] != nil {
			continue
		}
		r.Answered = true
		switch {
		case b.isAccepted(i):
			r.Order, r.Err = b.accepted(r), nil
		case b.refused[i] != nil:
			r.Err = b.refused[i]
		case len(b.shortages[i]) > 0:
			r.Err = &stock.ShortageError{Shortages: b.shortages[i]}
		case r.Key.Hash != b.requests[b.firstDuplicate(i)].Key.Hash:
			r.Err = idempotency.ErrReused
		default:
			r.Err = &idempotency.AnsweredError{Answer: b.answers[b.firstDuplicate(i)]}
		}
	}
}
