package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Type is the subject of an event, and the name of the event in a stream.
type Type string

// The types.
const (
	TypeOrder  Type = "order"  // an order was placed, queued, extended, paid, cancelled, rejected, or has expired
	TypeStock  Type = "stock"  // the level of a SKU has changed
	TypeLock   Type = "lock"   // a lease of a SKU was granted
	TypeTimer  Type = "timer"  // timers were worked off
	TypeMember Type = "member" // an instance has joined the cluster, or left it
	TypeLeader Type = "leader" // somebody leads, or nobody does any more
)

// Types returns all types.
func Types() []Type {
	return []Type{TypeOrder, TypeStock, TypeLock, TypeTimer, TypeMember, TypeLeader}
}

// Event is one thing that has happened. The field that Type names is set, and no other.
type Event struct {
	Type     Type      `json:"type"`
	Instance string    `json:"instance"` // that reports it
	At       time.Time `json:"at"`       // by the clock of that instance

	Order  *Order  `json:"order,omitempty"`
	Stock  *Stock  `json:"stock,omitempty"`
	Lock   *Lock   `json:"lock,omitempty"`
	Timer  *Timer  `json:"timer,omitempty"`
	Member *Member `json:"member,omitempty"`
	Leader *Leader `json:"leader,omitempty"`
}

// Order is an order as it was after a change.
type Order struct {
	ID         string    `json:"id"`
	CustomerID string    `json:"customer_id"`
	Status     string    `json:"status"`
	Reason     string    `json:"reason,omitempty"` // why it is REJECTED
	Items      []Item    `json:"items"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Item is a number of units of one SKU.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Stock is the level of a SKU as it was read after a change. Levels of several instances
// arrive in any order: the one with the highest Version is the newest.
type Stock struct {
	SKU       string `json:"sku"`
	Strategy  string `json:"strategy"`
	OnHand    int64  `json:"on_hand"`
	Reserved  int64  `json:"reserved"`
	Available int64  `json:"available"`
	Version   int64  `json:"version"`
}

// Lock has the leases of a SKU that an instance was granted since its previous event: their number, and the latest of
// them. It also has leases that have ended or were renewed since, and writes that a row refused because of their fencing token. Waiting
// orders are counted.
type Lock struct {
	SKU      string    `json:"sku"`
	Strategy string    `json:"strategy"`
	Holder   string    `json:"holder"` // the instance
	Fence    uint64    `json:"fence"`  // of the latest lease; 0 if the event is only about who waits
	Count    int64     `json:"count"`
	Leases   []Lease   `json:"leases,omitempty"`  // at most 32, the latest ones
	Refused  []Refusal `json:"refused,omitempty"` // likewise
	Waiting  int       `json:"waiting,omitempty"` // orders of the instance that wait for the lease
}

// Lease is the time for which an instance used a lease, by the clock of that instance.
type Lease struct {
	Fence uint64    `json:"fence"`
	Asked time.Time `json:"asked"` // when the instance began to wait for the lease
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"` // zero while the work continues; another event has the end

	// Expires is the end of the validity of a lease that is in use, unless it is renewed, or that has expired before Until.
	// Zero: it was released in time, or lasts as long as a session.
	Expires time.Time `json:"expires,omitzero"`
}

// Refusal is a write that a row refused because it had accepted a later fencing token.
type Refusal struct {
	Fence    uint64    `json:"fence"`
	Accepted uint64    `json:"accepted"` // with the token offset of the SKU, as Fence
	At       time.Time `json:"at"`
}

// Timer counts the timers of a kind that an instance has handled since its previous event, by outcome.
type Timer struct {
	Kind     string           `json:"kind"`
	Outcomes map[string]int64 `json:"outcomes"`
}

// Member is an instance that has joined the cluster, or left it.
type Member struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Role    string `json:"role"`
	Left    bool   `json:"left"`
}

// Leader is the leader of a leadership term, or, if Ended, its former leader.
type Leader struct {
	Name  string `json:"name"`
	Term  uint64 `json:"term"`
	Ended bool   `json:"ended"`
}

// SKUs returns the SKUs of the event.
func (e Event) SKUs() []string {
	switch {
	case e.Order != nil:
		skus := make([]string, len(e.Order.Items))
		for i, it := range e.Order.Items {
			skus[i] = it.SKU
		}
		return skus
	case e.Stock != nil:
		return []string{e.Stock.SKU}
	case e.Lock != nil:
		return []string{e.Lock.SKU}
	}
	return nil
}

// Filter chooses events. Empty fields choose all.
type Filter struct {
	Types    []Type
	SKU      string // orders with a line of it, and what else is about it
	Order    string // the order with this id
	Customer string // the orders of this customer and, if Types names them, the levels of SKUs; nothing else
}

func (f Filter) matches(e Event) bool {
	if len(f.Types) > 0 && !slices.Contains(f.Types, e.Type) {
		return false
	}
	own := e.Order != nil && e.Order.CustomerID == f.Customer
	if f.Customer != "" && !own && (e.Stock == nil || !f.wantsStock()) {
		return false
	}
	if f.Order != "" && (e.Order == nil || e.Order.ID != f.Order) {
		return false
	}
	return f.SKU == "" || slices.Contains(e.SKUs(), f.SKU)
}

// wantsStock reports whether Types includes levels. Otherwise a customer gets only orders, and no other event wakes its listener.
func (f Filter) wantsStock() bool { return slices.Contains(f.Types, TypeStock) }

var errForeign = errors.New("events: not an event")

// decode reads an event. The returned text has no line break, whatever program has written it.
func decode(raw string) (e Event, text string, err error) {
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(raw)); err != nil {
		return e, "", fmt.Errorf("%w: %w", errForeign, err)
	}
	if err := json.Unmarshal(line.Bytes(), &e); err != nil {
		return e, "", fmt.Errorf("%w: %w", errForeign, err)
	}
	set := map[Type]bool{
		TypeOrder: e.Order != nil, TypeStock: e.Stock != nil, TypeLock: e.Lock != nil,
		TypeTimer: e.Timer != nil, TypeMember: e.Member != nil, TypeLeader: e.Leader != nil,
	}
	maps.DeleteFunc(set, func(_ Type, is bool) bool { return !is })
	if len(set) != 1 || !set[e.Type] {
		return e, "", fmt.Errorf("%w: the type is %.100q", errForeign, e.Type)
	}
	return e, line.String(), nil
}
