package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// The points of an order worker. It stops at those that its task names in "stop", and reports all of them.
const (
	pointReady    = "ready"    // before anything else
	pointLocked   = "locked"   // it has a lease; the value is the fencing token
	pointRead     = "read"     // its transaction is about to begin; what is read before that has been read; the value is its state
	pointLater    = "later"    // after read, still before the transaction; the value is its state
	pointWrites   = "writes"   // in its transaction, with the row locked and read, before it writes the row
	pointCommit   = "commit"   // its transaction is about to be committed
	pointFenced   = "fenced"   // the row refused its token; the value is the token that it had accepted
	pointDone     = "done"     // the value is the outcome of the order
	pointReleased = "released" // the value is the error of the release
)

// The outcomes of an order.
const (
	accepted   = "accepted"
	outOfStock = "refused: out of stock"
	staleToken = "refused: the fencing token is stale" //nolint:gosec // no secret
	changed    = "refused: the row has changed since it was read"
	overLimit  = "refused: the customer has an open order"
)

// leaseValid is the value of a point at which a worker considers its lease valid.
const leaseValid = "the lease is valid"

// placing is a worker that places one order of one unit.
type placing struct {
	*Worker

	lease *dlock.Lease // may be nil
}

// orderWorker places one order of one unit, as an instance does: a lease, if the task asks for one, and the transaction of the store.
// The task has sku, update (a [stock.Update]), stop, and ttl if there is a lease. Its lock may be a textbook lock. Its unlock is "early"
// for a release before the commit. If the task has a customer, the customer may have one open order.
//
// The transaction continues when the lease is lost, unlike in the shop. So the labs show an unnoticed loss.
func orderWorker(ctx context.Context, w *Worker) {
	p := &placing{Worker: w}
	update := must(strconv.Atoi(w.Task["update"]))
	c := sqlstore.Config{URL: w.Task["database"], Instance: w.Task["name"]}
	c.Plugins = append(c.Plugins, sqlstore.StopAround(p.beforeBegin, func() { p.beforeCommit(ctx) }),
		sqlstore.StopBeforeStatement("UPDATE skus SET reserved", func() { p.at(pointWrites, "") }))
	store := must(sqlstore.Open(ctx, c))
	defer store.Close()
	p.at(pointReady, "")
	claim := stock.Claim{SKU: w.Task["sku"], Update: stock.Update(update)}
	if w.Task["ttl"] != "" {
		p.lease = acquire(ctx, w, claim.SKU)
		claim.Fence = p.lease.Fence()
		p.at(pointLocked, fmt.Sprint(claim.Fence.Token))
	}
	request := oneUnit(cmp.Or(w.Task["customer"], w.Task["name"]), claim.SKU, time.Hour)
	if w.Task["customer"] != "" {
		request.MaxOpen = 1
	}
	err := store.Commit(ctx, &order.Batch{Claims: []stock.Claim{claim}, Requests: []*order.Request{request}})
	if e, ok := errors.AsType[*stock.FencedError](err); ok {
		p.at(pointFenced, fmt.Sprint(e.Accepted.Token))
	}
	p.at(pointDone, outcome(errors.Join(err, request.Err)))
	if p.lease != nil && w.Task["unlock"] != "early" {
		p.release(ctx)
	}
}

// state says whether the worker considers its lease valid.
func (p *placing) state() string {
	if p.lease == nil {
		return ""
	}
	return validity(p.lease)
}

// beforeBegin is called when the transaction is about to begin.
func (p *placing) beforeBegin() {
	p.at(pointRead, p.state())
	p.at(pointLater, p.state())
}

// beforeCommit is called when the transaction has written.
func (p *placing) beforeCommit(ctx context.Context) {
	if p.Task["unlock"] == "early" {
		p.release(ctx)
	}
	p.at(pointCommit, p.state())
}

// released is the value of a release that went well.
const released = "released"

func (p *placing) release(ctx context.Context) {
	err := p.lease.Release(ctx)
	lost, _ := errors.AsType[*dlock.LostError](err)
	switch {
	case err == nil:
		p.at(pointReleased, released)
	case lost != nil:
		p.at(pointReleased, fmt.Sprintf("refused: the lease is lost (%s)", lost.Reason))
	default:
		p.at(pointReleased, err.Error())
	}
}

// acquire returns a lease of a SKU, by the lock of the task. It ends with the process.
func acquire(ctx context.Context, w *Worker, sku string) *dlock.Lease {
	if w.Task["lock"] != "" {
		return acquireTextbook(ctx, w, sku)
	}
	return must(persist(ctx, w.locker(), stock.LockKey(sku)))
}

// outcome names what became of an order.
func outcome(err error) string {
	var shortage *stock.ShortageError
	var limit *order.LimitError
	switch {
	case err == nil:
		return accepted
	case errors.As(err, &shortage):
		return outOfStock
	case errors.Is(err, dlock.ErrFenced):
		return staleToken
	case errors.Is(err, stock.ErrConflict):
		return changed
	case errors.As(err, &limit):
		return overLimit
	}
	panic(failure{fmt.Errorf("place an order: %w", err)})
}
