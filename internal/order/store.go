package order

import (
	"context"
	"time"

	"example.com/shop/internal/stock"
)

// Request is an order that is about to be committed, and then what became of
// it.
type Request struct {
	Order Order         // in: ID, CustomerID, Items; Commit fills in the rest
	TTL   time.Duration // from CreatedAt to ExpiresAt

	// Err is nil after Commit when the order was accepted, and a
	// [*stock.ShortageError] when it was refused for want of stock.
	Err error
}

// Store keeps the orders together with the stock that they hold.
type Store interface {
	// Commit places requests in one transaction: either one order of any number
	// of SKUs, or any number of orders of the same single SKU. claims name the
	// SKUs in ascending order, one claim each.
	//
	// It returns nil when every request has its answer: accepted, or refused in
	// Request.Err. Otherwise no order of the batch exists, and the error is
	// [dlock.ErrFenced], [stock.ErrConflict], [stock.ErrNotFound],
	// [stock.ErrBusy], [stock.ErrUnavailable] or the cause of ctx's end; but
	// with [ErrOutcomeUnknown] all or none of them may exist. A request whose
	// id is stored already counts as accepted, so Commit can be repeated.
	Commit(ctx context.Context, claims []stock.Claim, requests []*Request) error

	// Order returns the order with the given id as of now, or [ErrNotFound]. A
	// pending order past ExpiresAt reads as [Expired].
	Order(ctx context.Context, id string) (Order, error)

	// Settle turns a pending order that has not expired into to, together with
	// the movement of its units, and records paymentID. changed is false, and
	// nothing happens, when the order was not pending any more; the order
	// returned is the stored one in any case. Errors: [ErrNotFound],
	// [stock.ErrUnavailable], [stock.ErrBusy].
	Settle(ctx context.Context, id string, to Status, paymentID string) (o Order, changed bool, err error)

	// Extend adds by to ExpiresAt of a pending order that has not expired,
	// unless that would be more than life after CreatedAt. changed is false, and
	// nothing happens, when it would, or when the order was not pending any more;
	// the order returned is the stored one in any case. Errors: [ErrNotFound],
	// [stock.ErrUnavailable], [stock.ErrBusy], [ErrOutcomeUnknown].
	Extend(ctx context.Context, id string, by, life time.Duration) (o Order, changed bool, err error)

	// Expire turns those of the orders that are pending and past ExpiresAt into
	// [Expired], gives their units back and deletes the timers of all that are
	// final, in one transaction. It returns what it found, in the order of
	// ids; each id may be given once. It can be repeated: what is final stays as
	// it is. Errors: [stock.ErrUnavailable], [stock.ErrBusy], the cause of ctx's
	// end, after which nothing has changed; [ErrOutcomeUnknown].
	Expire(ctx context.Context, ids []string) ([]Expiry, error)

	// Level returns the level of sku, or [stock.ErrNotFound].
	Level(ctx context.Context, sku string) (stock.Level, error)
}
