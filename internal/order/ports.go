package order

import (
	"context"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/stock"
)

// Request is an order that is about to be committed, and then what became of
// it.
type Request struct {
	Order Order         // in: ID, CustomerID, Items; Commit fills in the rest
	TTL   time.Duration // until ExpiresAt

	// MaxOpen is how many Pending orders the customer may have with this one; 0: any number.
	MaxOpen int64

	// Queued says that the order is stored as [Queued] and becomes [Pending] now.
	Queued bool

	// Key is the key of the request, or nil. The answer is stored with an order that is
	// accepted; of one that is refused nothing is stored, see Store.Refuse.
	Key *idempotency.Request

	// Err is nil after Commit if the order was accepted. Otherwise nothing of the order is stored, and Err is a
	// [*stock.ShortageError], a [*LimitError] or [ErrCustomerBusy]. For a stored key, it is
	// [*idempotency.AnsweredError] or [idempotency.ErrReused]. For an order that has left the queue, it is a
	// [*StateError].
	Err error

	// Answered is set when Err is known. A Commit that fails may have answered some of its requests. The next Commit
	// skips them.
	Answered bool

	// Uncertain is set when Commit has failed with [ErrOutcomeUnknown], and has the next one look
	// first whether the order is stored.
	Uncertain bool
}

// Batch is orders that are committed under the same claims: one order of any number of SKUs, or any number of orders
// of one SKU.
type Batch struct {
	Claims   []stock.Claim // one for each SKU, in ascending order
	Requests []*Request

	// Bounded says that other orders wait for the transaction, as they always do if it has several batches. It waits for no row that
	// somebody else keeps locked, and the batch has the Err [ErrCommitAlone] instead. See Store.AwaitRows.
	Bounded bool

	// Err is set by Commit if nothing of the batch is stored except what is Answered, while other batches were
	// committed: [dlock.ErrFenced], [stock.ErrConflict], [stock.ErrNotFound], [ErrCommitAlone].
	Err error
}

// Target is the order that an operation changes.
type Target struct {
	ID    string
	Owner string               // it must be of this customer; empty: of anybody
	Key   *idempotency.Request // the key of the request, or nil
}

// Filter chooses orders. Empty fields choose all.
type Filter struct {
	Owner  string
	Status Status // as it reads now
	SKU    string // orders with a line of it
	Before string // orders with a lesser id, which were placed earlier
	Limit  int    // at most that many; at least 1
}

// Page is a page of orders, latest first. It may hold fewer than were asked for, also none,
// when more follow.
type Page struct {
	Orders []Order
	Next   string // Filter.Before of the next page; empty on the last
}

// Store keeps the orders together with the stock that they hold.
type Store interface {
	// Commit places the orders of batches in one transaction. It returns nil when each batch has its Err, or all of its
	// requests have their answers: accepted, or refused in Request.Err. The limits of a customer hold whatever is
	// committed alongside. A request is refused with [ErrCustomerBusy] if another transaction has the row of its
	// customer. On another error no order exists or has left the queue, except those that are Answered. It is
	// [stock.ErrBusy], [stock.ErrUnavailable] or the cause of ctx's end. After [ErrOutcomeUnknown] all or none of the
	// orders may exist. A request whose id is stored already counts as accepted, so Commit can be repeated.
	//
	// With several batches, or one that is Bounded, it waits for no row that somebody else keeps locked: see [ErrCommitAlone].
	Commit(ctx context.Context, batches ...*Batch) error

	// AwaitRows waits until no row of skus seems to be locked, on no connection, or ctx ends. It fails with [stock.ErrRowLocked] if
	// one stays locked.
	AwaitRows(ctx context.Context, skus []string) error

	// Enqueue stores the order of r as [Queued], with a timer of [PlaceTimer] that is due
	// after pause. It holds no units. Errors: those of [idempotency], [ErrOutcomeUnknown],
	// [stock.ErrUnavailable], [stock.ErrBusy].
	Enqueue(ctx context.Context, r *Request, pause time.Duration) error

	// Reject turns a queued order into [Rejected] and deletes its timer. It does nothing
	// to one that is not queued. Errors: [stock.ErrUnavailable], [stock.ErrBusy].
	Reject(ctx context.Context, id string, why Reason) error

	// Answer returns the answer that is stored for the key of r, found == false when
	// there is none, or [idempotency.ErrReused].
	Answer(ctx context.Context, r *idempotency.Request) (a idempotency.Answer, found bool, err error)

	// Refuse stores a as the answer to r, which had no effect. It fails with [*idempotency.AnsweredError] or
	// [idempotency.ErrReused] for a key that was stored meanwhile, [stock.ErrUnavailable], [stock.ErrBusy].
	Refuse(ctx context.Context, r *idempotency.Request, a idempotency.Answer) error

	// Order returns the order with the given id as of now if it is of owner, or of anybody
	// when owner is empty; otherwise [ErrNotFound]. A pending order past ExpiresAt reads as
	// [Expired], a queued one as [Rejected].
	Order(ctx context.Context, id, owner string) (Order, error)

	// Orders returns those that f chooses, latest first.
	Orders(ctx context.Context, f Filter) (Page, error)

	// Events returns the movements of an order in their order. Errors as of Order.
	Events(ctx context.Context, id, owner string) ([]Event, error)

	// Settle turns a pending order that has not expired into to, together with
	// the movement of its units, and records paymentID. A queued order it turns into
	// [Cancelled] if that is to. With t.Key the answer is stored if it did. changed is false, and
	// nothing happens, when the order was in another state; the order
	// returned is the stored one in any case. Errors: [ErrNotFound], those of
	// [idempotency], [stock.ErrUnavailable], [stock.ErrBusy].
	Settle(ctx context.Context, t Target, to Status, paymentID string) (o Order, changed bool, err error)

	// Extend adds by to ExpiresAt of a pending order that has not expired, unless that would be more than life after
	// CreatedAt. If it would, or if the order is not pending any more, nothing happens and changed is false. The
	// returned order is the stored one in any case. Errors: [ErrNotFound], those of [idempotency],
	// [stock.ErrUnavailable], [stock.ErrBusy], without t.Key [ErrOutcomeUnknown].
	Extend(ctx context.Context, t Target, by, life time.Duration) (o Order, changed bool, err error)

	// Expire turns those of the orders that are pending and past ExpiresAt into [Expired], and releases their units. It
	// deletes the timers of all final orders. It returns what it found, in the order of ids; each id may be given once.
	// An order is changed as a whole. An order that another transaction has locked does not delay the others for long.
	// It can be repeated: a final order stays as it is. Errors: [stock.ErrUnavailable], [stock.ErrBusy], the cause of
	// ctx's end, after which some may have expired; [ErrOutcomeUnknown].
	Expire(ctx context.Context, ids []string) ([]Expiry, error)

	// Level returns the level of sku, or [stock.ErrNotFound].
	Level(ctx context.Context, sku string) (stock.Level, error)
}

// Observer receives what happens to orders. Its methods must not block.
type Observer interface {
	// Placed is called once per order that was asked for, with how it ended. strategy is that of its SKUs, "mixed" if they have
	// several, or empty if one is unknown.
	Placed(ctx context.Context, strategy string, err error)

	// Committing is called when a transaction with so many orders begins.
	Committing(ctx context.Context, orders int)

	// Waited is called with the time from the arrival of an order in the commit queue to its first transaction, which has so many
	// orders. ctx is that of the order.
	Waited(ctx context.Context, d time.Duration, orders int)

	// Retried is called when an attempt was refused and is made again. reason
	// is [dlock.ErrFenced], [dlock.ErrLost] or [stock.ErrConflict].
	Retried(ctx context.Context, reason error)
}

// Publisher receives each change after its commit. Its methods must not block.
type Publisher interface {
	// Changed is called with an order as it is after a change that was committed. A change whose outcome is unknown is
	// not reported.
	Changed(o Order)

	// Waits is called when an order is about to wait for the lease of a SKU. count returns how many orders of this instance wait for
	// it at the moment of the call. It does not block.
	Waits(sku, strategy string, count func(sku string) int)

	// Held is called when the lock of a SKU is held by a lease for which this instance has waited since asked. expires is its
	// [dlock.Lease.ValidUntil], or nil. The caller calls ended when the work under the lease is done.
	Held(sku, strategy string, token uint64, asked time.Time, expires func() time.Time) (ended func())

	// Fenced is called when the row of a SKU has refused a write because of its fencing token.
	Fenced(strategy string, e *stock.FencedError)
}

// discard is an [Observer] and a [Publisher] that does nothing.
type discard struct{}

func (discard) Placed(context.Context, string, error) {}

func (discard) Committing(context.Context, int) {}

func (discard) Waited(context.Context, time.Duration, int) {}

func (discard) Retried(context.Context, error) {}

func (discard) Changed(Order) {}

func (discard) Waits(string, string, func(string) int) {}

func (discard) Held(string, string, uint64, time.Time, func() time.Time) (ended func()) {
	return func() {}
}

func (discard) Fenced(string, *stock.FencedError) {}
