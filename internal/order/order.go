package order

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/shop/internal/stock"
)

// MaxItems is the largest number of offers in one order.
const MaxItems = 50

// Status is the state of an order.
type Status string

// The states of an order; all but Queued and Pending are final.
const (
	Queued    Status = "QUEUED"
	Pending   Status = "PENDING"
	Confirmed Status = "CONFIRMED"
	Cancelled Status = "CANCELLED"
	Expired   Status = "EXPIRED"
	Rejected  Status = "REJECTED"
)

// Statuses returns all states.
func Statuses() []Status { return []Status{Queued, Pending, Confirmed, Cancelled, Expired, Rejected} }

// Reason says why an order is [Rejected].
type Reason string

// The reasons.
const (
	OutOfStock Reason = "out-of-stock"
	OverLimit  Reason = "over-limit"
	NotInTime  Reason = "not-placed-in-time"
)

// Movement returns what happens to the units of a pending order that becomes s.
func (s Status) Movement() stock.Movement {
	if s == Confirmed {
		return stock.Confirm
	}
	return stock.Release
}

// Item is a number of units of one SKU.
type Item struct {
	SKU      string
	Quantity int64
}

// Order is a customer's claim on units until ExpiresAt, and for good once it is
// paid.
type Order struct {
	ID         string
	CustomerID string
	Status     Status
	Items      []Item // by SKU, each SKU once
	PaymentID  string // empty until paid
	Reason     Reason // empty unless Rejected
	CreatedAt  time.Time
	ExpiresAt  time.Time // until when it waits: to be placed if Queued, to be paid if Pending
}

// Quantity returns how many units of sku the order wants.
func (o Order) Quantity(sku string) int64 {
	for _, it := range o.Items {
		if it.SKU == sku {
			return it.Quantity
		}
	}
	return 0
}

// Event is a movement of units that an order caused.
type Event struct {
	Movement stock.Movement
	SKU      string
	Quantity int64
	Fence    uint64 // of the lease that it was reserved under; 0 without one
	Instance string
	At       time.Time
}

// Outcomes of an operation on an order.
var (
	// ErrNotFound says that there is no such order.
	ErrNotFound = errors.New("order: no such order")

	// ErrInvalid says that an argument is outside its bounds.
	ErrInvalid = errors.New("order: invalid argument")

	// ErrUnknownSKU says that an item names a SKU that does not exist.
	ErrUnknownSKU = errors.New("order: unknown SKU")

	// ErrOutcomeUnknown says that the database did not confirm the commit and
	// could not be asked about it. The order with the id in the error may exist.
	ErrOutcomeUnknown = errors.New("order: outcome unknown")
)

// UnknownSKUError is [ErrUnknownSKU], and says which, and which of them belong to another shard.
type UnknownSKUError struct{ SKUs, OtherShard []string }

// Error implements error.
func (e *UnknownSKUError) Error() string { return fmt.Sprintf("%v %q", ErrUnknownSKU, e.SKUs) }

// Is makes the error match [ErrUnknownSKU].
func (*UnknownSKUError) Is(target error) bool { return target == ErrUnknownSKU }

// StateError says that an order is in a state that does not allow the
// operation, which had no effect.
type StateError struct{ Order Order }

// Error implements error.
func (e *StateError) Error() string {
	return fmt.Sprintf("order: %s is %s", e.Order.ID, e.Order.Status)
}

// LimitError says that an order would give its customer more than one may have. It
// had no effect.
type LimitError struct {
	SKU   string // whose limit it is; empty: that of open orders
	Limit int64
	Had   int64 // units that the customer has bought or reserved, or open orders
}

// Error implements error.
func (e *LimitError) Error() string {
	if e.SKU == "" {
		return fmt.Sprintf("order: the customer has %d open orders of %d", e.Had, e.Limit)
	}
	return fmt.Sprintf("order: the customer has %d units of %q of %d", e.Had, e.SKU, e.Limit)
}

// NewID returns a new order id. Ids made later sort later, so that orders are
// stored in the order of their arrival.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// ValidID reports whether id has the form of an order id.
func ValidID(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}

// merge returns items sorted by SKU with one line per SKU, so that a basket
// that names a SKU twice is checked against the sum.
func merge(items []Item) ([]Item, error) {
	if len(items) == 0 {
		return nil, fmt.Errorf("%w: no items", ErrInvalid)
	}
	if len(items) > MaxItems {
		return nil, fmt.Errorf("%w: %d items are more than %d", ErrInvalid, len(items), MaxItems)
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b Item) int { return strings.Compare(a.SKU, b.SKU) })
	merged := sorted[:0]
	for _, it := range sorted {
		if !stock.ValidSKU(it.SKU) {
			return nil, fmt.Errorf("%w: SKU %q", ErrInvalid, it.SKU)
		}
		if it.Quantity < 1 || it.Quantity > stock.MaxQuantity {
			return nil, fmt.Errorf("%w: quantity %d is not between 1 and %d", ErrInvalid, it.Quantity, stock.MaxQuantity)
		}
		if n := len(merged); n > 0 && merged[n-1].SKU == it.SKU {
			merged[n-1].Quantity += it.Quantity
			continue
		}
		merged = append(merged, it)
	}
	for _, it := range merged {
		if it.Quantity > stock.MaxQuantity {
			return nil, fmt.Errorf("%w: %d units of %q in all are more than %d", ErrInvalid, it.Quantity, it.SKU, stock.MaxQuantity)
		}
	}
	return merged, nil
}
