package sqlstore

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// place checks the limits, reserves units, and stores the orders that have all their units. An order that lacks any unit
// changes nothing. place begins afresh each time that it is called.
func (t *transaction) place(tx *gorm.DB) error {
	t.attempt = attempt{usages: make(map[string]*usage), locked: make(map[string]*level)}
	for _, b := range t.batches {
		b.failed = nil
	}
	for _, r := range t.requests {
		r.decision = decision{}
	}
	if err := t.countUsage(tx); err != nil {
		return err
	}
	if err := t.lockQueued(tx); err != nil {
		return err
	}
	if !slices.ContainsFunc(t.requests, t.wants) {
		return errRefused
	}
	if err := t.inTime(t.reserve(tx), errRowsLocked); err != nil {
		return err
	}
	return t.store(tx)
}

// store stores the accepted orders, with their ledger entries, timers and answers.
func (t *transaction) store(tx *gorm.DB) error {
	var (
		accepted, added []order.Order
		claims          [][]stock.Claim // of each accepted order
		timers          []timeout.Timer
		answers         []answer
	)
	for _, r := range t.requests {
		if !r.isAccepted() {
			continue
		}
		o, now := r.Order, time.UnixMicro(t.now).UTC()
		o.Status, o.ExpiresAt = order.Pending, now.Add(r.TTL)
		if r.Queued {
			t.end.add("UPDATE orders SET status = ?, expires_at = ? WHERE id = ?", string(o.Status), o.ExpiresAt.UnixMicro(), o.ID)
			if err := t.timers.Cancel(tx.Statement.Context, &t.end, order.PlaceTimer, o.ID); err != nil {
				return err
			}
		} else {
			o.CreatedAt = now
			added = append(added, o)
		}
		r.stored = o
		accepted, claims, timers = append(accepted, o), append(claims, r.batch.Claims), append(timers, o.Timer())
		if r.Key != nil {
			var err error
			if r.answer, err = idempotency.Result(o); err != nil {
				return err
			}
			answers = append(answers, answer{r.Key, r.answer})
		}
	}
	if len(accepted) == 0 {
		return errRefused
	}
	if len(t.usages) > 0 {
		t.end.counters(t.Store, t.accepted())
	}
	t.end.orders(added)
	t.end.ledger(t.Store, stock.Reserve, accepted, claims, t.now)
	var err error
	if t.push, err = t.timers.Schedule(tx.Statement.Context, &t.end, timers...); err != nil {
		return err
	}
	if err := t.end.answers(t.Store, answers); err != nil {
		return err
	}
	if len(answers) > 0 {
		last := len(t.end.texts) - 1
		t.end.texts[last] = t.within(t.end.texts[last])
	}
	return t.inTime(t.run(tx, &t.end), errKeyLocked)
}

// answerAll fills in the batches and their requests after the transaction.
func (t *transaction) answerAll(committed bool) {
	for _, b := range t.batches {
		if b.Err = b.failed; b.failed == nil {
			t.showLevels(b.Claims, committed)
		}
	}
	for _, r := range t.requests {
		if r.batch.failed != nil {
			continue
		}
		r.Answered = true
		switch {
		case r.isAccepted():
			r.Order, r.Err = r.stored, nil
		case r.refused != nil:
			r.Err = r.refused
		case r.original == nil:
			r.Err = &stock.ShortageError{Shortages: r.shortages}
		case r.original.Key.Hash != r.Key.Hash:
			r.Err = idempotency.ErrReused
		default:
			r.Err = &idempotency.AnsweredError{Answer: r.original.answer}
		}
	}
	if committed {
		t.push()
	}
}

// showLevels fills in [stock.Claim.Seen]: the levels of the rows that were locked, as they are after the transaction.
func (t *transaction) showLevels(claims []stock.Claim, committed bool) {
	for _, c := range claims {
		row := t.locked[c.SKU]
		if row == nil || c.Seen == nil {
			continue
		}
		*c.Seen = row.Level
		if row.sold > 0 && committed {
			c.Seen.Version++
		} else {
			c.Seen.Reserved -= row.sold
		}
	}
}
