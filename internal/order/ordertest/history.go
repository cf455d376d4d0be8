// Package ordertest records the responses that clients of the order service received, and checks that the history
// is linearizable.
//
// One sequence of events per order, SKU and customer must explain every response, read and refusal with its numbers. In
// that sequence each event takes effect between its request and its response.
//
// The checker needs a database whose clock is that of this process, and known outcomes.
package ordertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Shop is what clients do with orders. [*order.Service] is one.
type Shop interface {
	Place(ctx context.Context, p order.Purchase) (order.Order, error)
	Pay(ctx context.Context, t order.Target, payment string) (order.Order, error)
	Cancel(ctx context.Context, t order.Target) (order.Order, error)
	Extend(ctx context.Context, t order.Target, by time.Duration) (order.Order, error)
	Order(ctx context.Context, id, owner string) (order.Order, error)
	Orders(ctx context.Context, f order.Filter) (order.Page, error)
}

type kind string

const (
	place  kind = "place"
	pay    kind = "pay"
	cancel kind = "cancel"
	extend kind = "extend"
	read   kind = "read"
	expire kind = "expire" // its units were released, as the service published
)

// op is an operation and its answer. A refused operation has err, and the order that the refusal contained.
type op struct {
	kind      kind
	call, ret time.Time
	customer  string
	items     []order.Item
	payment   string
	order     order.Order
	err       error
}

// History is what clients were answered. It is the [order.Publisher] of the services that they use. It is safe for
// concurrent use; its methods do not block.
type History struct {
	mu  sync.Mutex
	ops []op
}

var _ order.Publisher = (*History)(nil)

// Changed implements [order.Publisher]: it notes when an order has expired.
func (h *History) Changed(o order.Order) {
	if o.Status == order.Expired {
		h.add(op{kind: expire, call: o.ExpiresAt, ret: time.Now(), order: o})
	}
}

// Waits implements [order.Publisher].
func (*History) Waits(string, string, func(string) int) {}

// Held implements [order.Publisher].
func (*History) Held(string, string, uint64, time.Time, func() time.Time) (ended func()) {
	return func() {}
}

// Fenced implements [order.Publisher].
func (*History) Fenced(string, *stock.FencedError) {}

// Expired returns how many orders have expired.
func (h *History) Expired() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.ops {
		if o.kind == expire {
			n++
		}
	}
	return n
}

func (h *History) add(o op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

// Client returns s with a record of all that it answers.
func (h *History) Client(s Shop) Shop { return client{h, s} }

type client struct {
	h *History
	Shop
}

// note records the answer to o, unless it says that the store was busy and nothing happened.
func (c client) note(o op, answer order.Order, err error) {
	o.ret, o.order, o.err = time.Now(), answer, err
	if moved, ok := errors.AsType[*order.StateError](err); ok {
		o.order = moved.Order
	}
	busy := errors.Is(err, stock.ErrBusy) || errors.Is(err, order.ErrConcurrencyLimit) || errors.Is(err, order.ErrInvalid)
	if !busy || errors.Is(err, order.ErrOutcomeUnknown) {
		c.h.add(o)
	}
}

// record calls do, which is the operation o, and notes its answer.
func (c client) record(o op, do func() (order.Order, error)) (order.Order, error) {
	o.call = time.Now()
	answer, err := do()
	c.note(o, answer, err)
	return answer, err
}

// Place implements [Shop], and so do the other methods.
func (c client) Place(ctx context.Context, p order.Purchase) (order.Order, error) {
	began := op{kind: place, customer: p.Customer, items: p.Items}
	return c.record(began, func() (order.Order, error) { return c.Shop.Place(ctx, p) })
}

func (c client) Pay(ctx context.Context, t order.Target, payment string) (order.Order, error) {
	return c.record(op{kind: pay, payment: payment}, func() (order.Order, error) { return c.Shop.Pay(ctx, t, payment) })
}

func (c client) Cancel(ctx context.Context, t order.Target) (order.Order, error) {
	return c.record(op{kind: cancel}, func() (order.Order, error) { return c.Shop.Cancel(ctx, t) })
}

func (c client) Extend(ctx context.Context, t order.Target, by time.Duration) (order.Order, error) {
	return c.record(op{kind: extend}, func() (order.Order, error) { return c.Shop.Extend(ctx, t, by) })
}

func (c client) Order(ctx context.Context, id, owner string) (order.Order, error) {
	return c.record(op{kind: read}, func() (order.Order, error) { return c.Shop.Order(ctx, id, owner) })
}

func (c client) Orders(ctx context.Context, f order.Filter) (order.Page, error) {
	began := op{kind: read, call: time.Now()}
	p, err := c.Shop.Orders(ctx, f)
	for _, o := range p.Orders {
		c.note(began, o, nil)
	}
	return p, err
}
