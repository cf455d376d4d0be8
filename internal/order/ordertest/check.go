package ordertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const (
	// tick is the resolution of the coarsest clock of a database, SQLite's, with some to spare.
	tick = 3 * time.Millisecond

	// searchLimit bounds the search for one sequence. One that does not end is a failure.
	searchLimit = time.Minute
)

// Check returns what contradicts the history, or nil. It must have ended, and so must the expiry of its orders. levels are
// the SKUs as they were before, whose only orders the history has. It blocks for a minute per order and SKU at most, and
// usually for milliseconds.
func (h *History) Check(levels ...stock.Level) error {
	h.mu.Lock()
	ops := slices.Clone(h.ops)
	h.mu.Unlock()
	lives, err := livesOf(ops)
	errs := []error{err}
	for _, l := range lives {
		errs = append(errs, l.check())
	}
	for _, l := range levels {
		errs = append(errs, search("units of "+l.SKU, unitsModel(l.Available()), unitsOf(l.SKU, ops, lives)))
		if l.Limit > 0 {
			for customer, part := range limitsOf(l.SKU, ops, lives) {
				errs = append(errs, search("limit of "+customer+" for "+l.SKU, unitsModel(l.Limit), part))
			}
		}
	}
	return errors.Join(errs...)
}

// life is what was answered about one order.
type life struct {
	placed   op
	ops      []op
	first    time.Time // when it expires at first
	last     time.Time // ... with all extensions
	released *op       // when its units were released; nil: they were not
}

// livesOf sorts ops by their orders.
func livesOf(ops []op) (map[string]*life, error) {
	lives := make(map[string]*life)
	var errs []error
	for _, o := range ops {
		if o.kind == place && o.err == nil {
			lives[o.order.ID] = &life{placed: o, first: o.order.ExpiresAt, last: o.order.ExpiresAt}
		}
	}
	for _, o := range ops {
		_, short := errors.AsType[*stock.ShortageError](o.err)
		_, over := errors.AsType[*order.LimitError](o.err)
		_, moved := errors.AsType[*order.StateError](o.err)
		l := lives[o.order.ID]
		switch {
		case o.err != nil && !short && !over && !moved:
			errs = append(errs, fmt.Errorf("ordertest: %s: an outcome that cannot be judged: %w", o.kind, o.err))
		case o.kind == place:
		case l == nil:
			errs = append(errs, fmt.Errorf("ordertest: %s of %q, which nobody has placed", o.kind, o.order.ID))
		default:
			l.add(o)
		}
	}
	return lives, errors.Join(errs...)
}

func (l *life) add(o op) {
	l.ops = append(l.ops, o)
	switch {
	case o.err != nil:
	case o.kind == extend && o.order.ExpiresAt.After(l.last):
		l.last = o.order.ExpiresAt
	case o.kind == cancel && l.released != nil: // a cancellation that was repeated: the first one had the effect
		l.released.call = earliest(l.released.call, o.call)
		l.released.ret = earliest(l.released.ret, o.ret)
	case o.kind == cancel, o.kind == expire:
		l.released = &o
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// check returns what contradicts the answers about the order.
func (l *life) check() error {
	id := l.placed.order.ID
	for _, o := range l.ops {
		switch late := o.call.After(l.last.Add(tick)); {
		case o.order.Status == order.Expired && o.ret.Before(l.first.Add(-tick)):
			return fmt.Errorf("ordertest: %s reads as expired %v too early", id, l.first.Sub(o.ret))
		case o.err == nil && late && o.kind == extend,
			o.err == nil && late && (o.kind == pay || o.kind == cancel) && !slices.ContainsFunc(l.ops, func(p op) bool {
				return p.kind == o.kind && p.err == nil && !p.call.After(l.last.Add(tick))
			}):
			return fmt.Errorf("ordertest: %s of %s began %v after it had expired", o.kind, id, o.call.Sub(l.last))
		}
	}
	var ops []porcupine.Operation
	for _, o := range l.ops {
		ops = append(ops, during(o, o))
	}
	return search("order "+id, lifeModel, ops)
}

func during(o op, input any) porcupine.Operation {
	return porcupine.Operation{Input: input, Call: o.call.UnixNano(), Return: max(o.ret.UnixNano(), o.call.UnixNano())}
}

// search looks for a sequence of ops that the model allows.
func search(what string, m porcupine.Model, ops []porcupine.Operation) error {
	switch result := porcupine.CheckOperationsTimeout(m, ops, searchLimit); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("ordertest: %s: no sequence of %d operations was found within %v", what, len(ops), searchLimit)
	default:
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		var text strings.Builder
		for i, o := range ops[:min(len(ops), 40)] {
			fmt.Fprintf(&text, "\n%d: %d to %d µs: %s", i, (o.Call-ops[0].Call)/1000, (o.Return-ops[0].Call)/1000, describe(o.Input))
		}
		return fmt.Errorf("ordertest: %s: no sequence explains %d operations:%s", what, len(ops), text.String())
	}
}

func describe(input any) string {
	o, ok := input.(op)
	if !ok {
		return fmt.Sprintf("%+v", input)
	}
	return fmt.Sprintf("%s: %s, %v", o.kind, o.order.Status, o.err)
}

// state is that of an order. It expires when a response first says so: no client can distinguish that from an earlier
// moment.
type state struct {
	status  order.Status
	payment string
}

var lifeModel = porcupine.Model{
	Init: func() any { return state{status: order.Pending} },
	Step: func(before, input, _ any) (bool, any) {
		s, o := before.(state), input.(op) //nolint:errcheck,forcetypeassert // of this model
		if o.order.Status == order.Expired && s.status == order.Pending {
			s.status = order.Expired
		}
		if o.err != nil || o.kind == read || o.kind == expire {
			return o.order.Status == s.status && o.order.PaymentID == s.payment, s
		}
		switch {
		case o.kind == extend:
			return s.status == order.Pending, s
		case s.status == order.Pending && o.kind == pay:
			return o.order.Status == order.Confirmed, state{order.Confirmed, o.payment}
		case s.status == order.Pending:
			return o.order.Status == order.Cancelled, state{status: order.Cancelled}
		}
		return o.order.Status == s.status && (o.kind == cancel || o.payment == s.payment), s // repeated
	},
}

// move takes units, or releases them if it is negative. If wanted is more than there were, it does neither, and the
// response says how many there were.
type move struct{ units, wanted int64 }

// unitsModel is the units of a SKU that can be bought, by anybody or by one customer.
func unitsModel(available int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return available },
		Step: func(before, input, _ any) (bool, any) {
			n, m := before.(int64), input.(move) //nolint:errcheck,forcetypeassert // of this model
			if m.wanted > 0 {
				return n == m.units && n < m.wanted, n
			}
			return n >= m.units, n - m.units
		},
	}
}

func quantity(items []order.Item, sku string) (n int64) {
	for _, it := range items {
		if it.SKU == sku {
			n += it.Quantity
		}
	}
	return n
}

// unitsOf returns what happened to the units of sku.
func unitsOf(sku string, ops []op, lives map[string]*life) (part []porcupine.Operation) {
	for _, o := range ops {
		if short, ok := errors.AsType[*stock.ShortageError](o.err); ok {
			for _, s := range short.Shortages {
				if s.SKU == sku {
					part = append(part, during(o, move{units: s.Available, wanted: s.Requested}))
				}
			}
		}
	}
	for _, l := range lives {
		q := quantity(l.placed.order.Items, sku)
		if q == 0 {
			continue
		}
		part = append(part, during(l.placed, move{units: q}))
		if l.released != nil {
			part = append(part, during(*l.released, move{units: -q}))
		}
	}
	return part
}

// limitsOf returns what happened to what customers have of sku. An order that is neither paid nor cancelled counts
// until it expires, whenever its units are released.
func limitsOf(sku string, ops []op, lives map[string]*life) map[string][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, o := range ops {
		if over, ok := errors.AsType[*order.LimitError](o.err); ok && over.SKU == sku {
			parts[o.customer] = append(parts[o.customer], during(o, move{units: over.Limit - over.Had, wanted: quantity(o.items, sku)}))
		}
	}
	for _, l := range lives {
		q, c := quantity(l.placed.order.Items, sku), l.placed.customer
		if q == 0 {
			continue
		}
		parts[c] = append(parts[c], during(l.placed, move{units: q}))
		if r := l.released; r != nil && r.kind == cancel {
			parts[c] = append(parts[c], during(*r, move{units: -q}))
		} else if r != nil {
			parts[c] = append(parts[c], during(op{call: l.last.Add(-tick), ret: l.last.Add(tick)}, move{units: -q}))
		}
	}
	return parts
}
