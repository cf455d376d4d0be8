package sqlstore

import (
	"context"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// transaction stores the orders of batches in one transaction of the database. read reads what it needs before it
// begins, place runs in it, and answerAll fills in the requests after it.
type transaction struct {
	*Store
	batches  []*batch
	requests []*request    // of all batches, without those that are answered
	wait     time.Duration // the longest wait for rows and keys; 0: that of a session
	together bool          // one statement locks the rows of all SKUs, perhaps of one; an engine may limit the time of no other

	seen    map[string]stock.Level // levels that were read before the transaction, by SKU
	limited map[string]int64       // limits per customer, by SKU
	now     int64                  // the latest time that the database returned

	attempt // set afresh by place
}

// attempt is what one run of place has found and decided, besides what it has decided about batches and requests.
type attempt struct {
	usages  map[string]*usage // by customer, if a limit applies
	missing []counter         // that have no rows
	locked  map[string]*level // rows that are locked, by SKU
	end     script            // ends the transaction
	push    func()            // sends the timers to the index, after the commit
}

// batch is one batch of a transaction.
type batch struct {
	*order.Batch

	failed error // why nothing of the batch is stored, while other batches may be; set afresh by place
}

// request is one order of a transaction.
type request struct {
	*order.Request
	batch   *batch
	earlier *request // the previous request of the transaction with the same key, or nil

	decision // set afresh by place
}

// decision is what a transaction has decided about a request.
type decision struct {
	original  *request           // the accepted request with the same key, whose order counts for this request, or nil
	refused   error              // a reason other than a shortage: a limit, or the status of a queued order
	shortages []stock.Shortage   // by SKU
	stored    order.Order        // as it is stored, if the request is accepted
	answer    idempotency.Answer // to store with the key, if the request is accepted and has one
}

// level is a level in which a transaction reserves units.
type level struct {
	stock.Level

	sold int64 // units that the transaction has reserved; Reserved includes them
}

func newTransaction(s *Store, batches []*order.Batch, wait time.Duration) *transaction {
	t := &transaction{Store: s, wait: wait, together: wait > 0 && (len(batches) > 1 || len(batches[0].Claims) > 1 || s.engine.EndsReadsOnly)}
	latest := make(map[idempotency.Scope]*request)
	for _, b := range batches {
		of := &batch{Batch: b}
		t.batches = append(t.batches, of)
		for _, r := range b.Requests {
			if r.Answered {
				continue
			}
			added := &request{Request: r, batch: of}
			if r.Key != nil {
				added.earlier, latest[r.Key.Scope] = latest[r.Key.Scope], added
			}
			t.requests = append(t.requests, added)
		}
	}
	return t
}

// read reads the limits, and the levels of strategies that decide by an earlier read. Each level takes one statement. So does the time, if
// no statement of the transaction returns it.
func (t *transaction) read(ctx context.Context) (err error) {
	t.seen, t.limited = make(map[string]stock.Level), make(map[string]int64)
	asks := false
	for _, b := range t.batches {
		for _, c := range b.Claims {
			limit, known := t.limits.Load(c.SKU)
			if c.Update.ReadsBefore() || !known {
				level, now, err := t.levelAt(ctx, c.SKU)
				if err != nil {
					return err
				}
				t.seen[c.SKU], t.now, limit = level, now, level.Limit
			}
			asks = asks || c.Update == stock.Conditional && !t.together && t.engine.Changed == ""
			if n := limit.(int64); n > 0 { //nolint:errcheck,forcetypeassert // only limits are stored
				t.limited[c.SKU] = n
			}
		}
	}
	if t.now == 0 && asks { // other updates read the time with the level, in the transaction
		if t.now, err = t.Store.now(ctx); err != nil {
			return t.translate(ctx, err)
		}
	}
	return nil
}

// wants decides whether r still asks for units, and records why not: no earlier request has placed the same order, its batch has not failed,
// and it is within its limits. It is called for the requests in their order.
func (t *transaction) wants(r *request) bool {
	r.original = nil
	if e := r.earlier; e != nil {
		if r.original = e.original; e.isAccepted() {
			r.original = e
		}
	}
	if r.original != nil || r.batch.failed != nil {
		return false
	}
	if r.refused == nil {
		r.refused = t.over(r)
	}
	return r.refused == nil
}

// isAccepted reports whether the order of r, about which the transaction has decided, is stored.
func (r *request) isAccepted() bool {
	return r.original == nil && r.refused == nil && len(r.shortages) == 0 && r.batch.failed == nil
}

// short records that r wants more units of sku than are available.
func (r *request) short(sku string, wanted, available int64) {
	r.shortages = append(r.shortages, stock.Shortage{SKU: sku, Requested: wanted, Available: max(0, available)})
}
