package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// timersTTL is how long the orders of the lab wait for payment.
const timersTTL = time.Second

// timersPatience is how late a timer may fire before it counts as lost. The overdue scan needs some seconds.
const timersPatience = 45 * time.Second

func runTimers(ctx context.Context, r *Run) {
	s := r.open(ctx)
	e := &timersRun{stores: s, orders: r.Size(5, 50), picture: r.Draw(&Picture{
		Title:  "three kinds of timers: the first process is killed, the second one continues",
		Legend: Legend{Holds: "has the timers, or has fired them", Stale: "killed, or the timers are lost", Waits: "scans for overdue rows", Neutral: "claims timers"},
	})}
	variants := []*timersVariant{{kind: inMemory}, {kind: inSet}, {kind: inRows}}
	for _, step := range []func(context.Context, *timersVariant){e.start, e.place, e.kill, e.replace} {
		for _, v := range variants {
			step(ctx, v)
		}
	}
	// The rows are last. When they have fired, the other timers are overdue by the same time.
	for _, v := range slices.Backward(variants) {
		e.judge(ctx, v)
	}
}

// timersVariant is a place for timers, with the two processes that use it.
type timersVariant struct {
	kind          string
	first, second *Process
	placed        time.Time
	killed        bool      // the first process
	since         time.Time // when the second process began to consume
	found         string    // how many timers it found then
}

func (v *timersVariant) sku() string { return "unpaid-" + v.kind }

// timersRun is one run of the lab.
type timersRun struct {
	*stores

	orders  int
	picture *Picture
}

// start starts both processes of a variant. They wait until they are needed.
func (e *timersRun) start(ctx context.Context, v *timersVariant) {
	e.stock(ctx, v.sku(), "conditional", e.orders)
	start := func(name string, orders int) *Process {
		e.picture.row(name)
		return e.r.ready(ctx, name, e.task("name", name, "kind", v.kind, "sku", v.sku(), "orders", strconv.Itoa(orders)))
	}
	v.first, v.second = start(v.kind+", first", e.orders), start(v.kind+", second", 0)
}

// place lets the first process place orders.
func (e *timersRun) place(ctx context.Context, v *timersVariant) {
	v.placed = v.first.To(ctx, pointPlaced).At
	e.r.Step("%s: places %d orders for all units; none is paid, and each expires after %v", v.first.Name, e.orders, timersTTL)
	if v.kind == inMemory { // it is killed before they expire; the others have the time for it that they need
		e.kill(ctx, v)
	}
}

// kill kills the first process when it has the timers and has not fired them.
func (e *timersRun) kill(ctx context.Context, v *timersVariant) {
	if v.killed {
		return
	}
	what := fmt.Sprintf("killed while its %d timers wait", e.orders)
	if v.kind != inMemory {
		claimed := v.first.Until(ctx, pointClaimed)
		e.picture.Mark(v.first.Name, claimed.At, Neutral, claimed.Value+" timers are due, and this process claims them")
		what = fmt.Sprintf("killed: it has claimed %s timers, and released nothing", claimed.Value)
	}
	v.first.Kill()
	at := time.Now()
	v.killed = true
	e.picture.Span(v.first.Name, v.placed, at, Holds, "timers wait")
	e.picture.Mark(v.first.Name, at, Stale, what)
	e.r.Step("%s: %s", v.first.Name, what)
}

// replace lets the second process consume the timers that it finds.
func (e *timersRun) replace(ctx context.Context, v *timersVariant) {
	found := v.second.To(ctx, pointFound)
	v.since, v.found = found.At, found.Value
	e.r.Step("%s: takes over, and finds %s timers", v.second.Name, v.found)
}

// judge checks the fates of the orders. It waits for the timers that are rows.
func (e *timersRun) judge(ctx context.Context, v *timersVariant) {
	fired, early, twice := 0, 0, 0
	var latest time.Duration
	look := func() bool {
		now, fates := fatesOf(ctx, e.records, v.sku())
		fired, early, twice, latest = 0, 0, 0, 0
		for _, f := range fates {
			if f.Releases == 0 {
				continue
			}
			fired++
			if f.Twice() {
				twice++
			}
			delay := f.ReleasedAt.Sub(f.ExpiresAt)
			if delay < 0 {
				early++
			}
			latest = max(latest, delay)
		}
		return fired == e.orders || v.kind != inRows || now.After(fates[0].ExpiresAt.Add(timersPatience))
	}
	await(ctx, "the second process releases all orders of "+v.sku(), look)
	customer := e.buy(ctx, v.sku())
	e.r.Step("%s: released %d of %d orders; the next customer is %s", v.second.Name, fired, e.orders, customer)
	e.r.Measure("timers that never fire: "+v.kind, float64(e.orders-fired), "timers")
	if v.kind != inRows {
		e.picture.Span(v.second.Name, v.since, time.Now(), Stale, fmt.Sprintf("finds %s timers: the units stay reserved", v.found))
		e.r.Effect(fired == 0 && v.found == "0" && customer == outOfStock, "%s: %d of %d timers are lost, and the next customer is %s", v.kind, e.orders-fired, e.orders, customer)
		return
	}
	e.picture.Span(v.second.Name, v.since, time.Now(), Waits, fmt.Sprintf("finds %s rows, scans for overdue ones", v.found))
	e.picture.Mark(v.second.Name, time.Now(), kindOf(fired == e.orders), fmt.Sprintf("%d of %d orders released", fired, e.orders))
	e.r.Measure("latest release after its expiry: "+v.kind, milliseconds(latest), "ms")
	e.r.Cure(fired == e.orders && early == 0 && twice == 0 && customer == accepted,
		"%s: %d of %d timers fired, %d early and %d twice; the next customer's order is %s", v.kind, fired, e.orders, early, twice, customer)
}

// buy attempts to buy one unit.
func (s *stores) buy(ctx context.Context, sku string) string {
	request := oneUnit("next customer", sku, time.Hour)
	err := s.records.Commit(ctx, &order.Batch{Claims: []stock.Claim{{SKU: sku, Update: stock.Conditional}}, Requests: []*order.Request{request}})
	return outcome(cmp.Or(err, request.Err))
}

// oneUnit is the request of a customer for one unit.
func oneUnit(customer, sku string, ttl time.Duration) *order.Request {
	return &order.Request{
		Order: order.Order{ID: order.NewID(), CustomerID: customer, Items: []order.Item{{SKU: sku, Quantity: 1}}},
		TTL:   ttl,
	}
}
