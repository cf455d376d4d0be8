package lab

import (
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
	pointRead     = "read"     // its transaction is about to begin; what is read before that has been read
	pointWrites   = "writes"   // in its transaction, with the row locked and read, before it writes the row
	pointDone     = "done"     // the value is the outcome of the order
	pointReleased = "released" // the value is the error of the release
)

// The outcomes of an order.
const (
	accepted   = "accepted"
	outOfStock = "refused: out of stock"
	staleToken = "refused: the fencing token is stale" //nolint:gosec // no secret
	changed    = "refused: the row has changed since it was read"
)

// orderWorker places one order of one unit, as an instance does: a lease, if the task asks for one, and the transaction of the store.
// The task has sku, update (a [stock.Update]), stop, and ttl if there is a lease (see [Worker.locker]).
func orderWorker(ctx context.Context, w *Worker) (err error) {
	update, err := strconv.Atoi(w.Task["update"])
	if err != nil {
		return err
	}
	c := sqlstore.Config{URL: w.Task["database"], Instance: w.Task["name"]}
	var gone error
	c.Plugins = append(c.Plugins, sqlstore.StopBefore(func() { gone = w.at(pointRead, "") }),
		sqlstore.StopBeforeStatement("UPDATE skus SET reserved", func() { gone = errors.Join(gone, w.at(pointWrites, "")) }))
	store, err := sqlstore.Open(ctx, c)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := w.at(pointReady, ""); err != nil {
		return err
	}
	claim := stock.Claim{SKU: w.Task["sku"], Update: stock.Update(update)}
	var lease *dlock.Lease
	if w.Task["ttl"] != "" {
		if lease, err = acquire(ctx, w, claim.SKU); err != nil {
			return err
		}
		claim.Fence = lease.Fence()
		if err := w.at(pointLocked, "%d", claim.Fence.Token); err != nil {
			return err
		}
	}
	request := &order.Request{
		Order: order.Order{ID: order.NewID(), CustomerID: w.Task["name"], Items: []order.Item{{SKU: claim.SKU, Quantity: 1}}},
		TTL:   time.Hour,
	}
	err = store.Commit(ctx, &order.Batch{Claims: []stock.Claim{claim}, Requests: []*order.Request{request}})
	if gone != nil {
		return gone
	}
	said, err := outcome(errors.Join(err, request.Err))
	if err != nil {
		return err
	}
	if err := w.at(pointDone, "%s", said); err != nil || lease == nil {
		return err
	}
	return w.at(pointReleased, "%v", lease.Release(ctx))
}

// acquire returns a lease of a SKU from the lock service of the task. It ends with the process.
func acquire(ctx context.Context, w *Worker, sku string) (*dlock.Lease, error) {
	locker, err := w.locker()
	if err != nil {
		return nil, err
	}
	return persist(ctx, locker, stock.LockKey(sku))
}

// outcome names what became of an order.
func outcome(err error) (string, error) {
	var shortage *stock.ShortageError
	switch {
	case err == nil:
		return accepted, nil
	case errors.As(err, &shortage):
		return outOfStock, nil
	case errors.Is(err, dlock.ErrFenced):
		return staleToken, nil
	case errors.Is(err, stock.ErrConflict):
		return changed, nil
	}
	return "", fmt.Errorf("place an order: %w", err)
}
