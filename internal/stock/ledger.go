package stock

import "time"

// Movement is a reason for which a level changes.
type Movement string

// The movements.
const (
	Reserve Movement = "RESERVE"
	Confirm Movement = "CONFIRM"
	Release Movement = "RELEASE"
	Restock Movement = "RESTOCK"
	Rebase  Movement = "REBASE" // moves no units: fences are counted from another base
)

// Delta returns what quantity units of m add to the two columns of a level.
func (m Movement) Delta(quantity int64) (onHand, reserved int64) {
	switch m {
	case Reserve:
		return 0, quantity
	case Confirm:
		return -quantity, -quantity
	case Release:
		return 0, -quantity
	case Restock:
		return quantity, 0
	case Rebase:
	}
	return 0, 0
}

// Entry is a ledger entry: a movement of units of a SKU.
type Entry struct {
	ID         int64     `json:"id"`
	Movement   Movement  `json:"movement"`
	Quantity   int64     `json:"quantity"`
	OrderID    string    `json:"order_id,omitempty"` // empty: the movement belongs to no order
	CustomerID string    `json:"customer_id,omitempty"`
	Status     string    `json:"status,omitempty"` // of the order after the movement
	Instance   string    `json:"instance"`
	At         time.Time `json:"at"`
}
