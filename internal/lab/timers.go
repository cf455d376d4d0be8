package lab

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

func timersLab() Lab {
	return Lab{
		Number: 13, Name: "timers", Title: "Timers that survive their process",
		Question: "An unpaid order holds units. Its timer releases them. What is left of the timer if the process dies?",
		Expect: "A timer in memory dies with its process. A timer in a Redis sorted set is lost if a process removes it with ZREM and dies. " +
			"A timer that is a row of the database fires in another process.",
		Why: "Memory ends with its process. ZREM removes the timer before its work is done, so between ZREM and the work only one process has the timer. " +
			"In both cases no place is left in which another process could find it, and the units stay reserved.",
		Cure: "Insert the timer as a row in the transaction that places the order, and delete the row in the transaction that expires the order. An index in Redis " +
			"makes timers fast, and may lose entries: the overdue scan finds every row that is due and that nobody handled.",
		Links: []Link{
			{"the delay queue of the textbooks", "internal/timeout/textbook/textbook.go"},
			{"the overdue scan", "internal/timeout/overdue_scan.go"},
			{"the transaction that expires orders", "internal/sqlstore/expire.go"},
			{"the test that kills consumers", "internal/timeout/faults/consumer_test.go"},
		},
		Exercises: [3]string{
			"Let the textbook queue keep claimed timers in a second sorted set. Who returns them to the first set, and when?",
			"The overdue scan waits two seconds before it takes a timer. What happens if it waits for no time, or for a minute?",
			"Empty Redis with FLUSHALL while the rows wait. Which timers fire late, and by how much?",
		},
		run: runTimers, worker: timersWorker,
	}
}

// timersTTL is how long the orders of the lab wait for payment.
const timersTTL = time.Second

// timersPatience is how late a timer may fire before it counts as lost. The overdue scan needs some seconds.
const timersPatience = 45 * time.Second

func runTimers(ctx context.Context, r *Run) error {
	s, err := r.open(ctx)
	if err != nil {
		return err
	}
	e := &timersRun{stores: s, orders: r.Size(5, 50), picture: &Picture{Title: "three kinds of timers: the first process is killed, the second one continues"}}
	r.Draw(e.picture)
	variants := []*timersVariant{{kind: inMemory}, {kind: inSet}, {kind: inRows}}
	for _, step := range []func(context.Context, *timersVariant) error{e.start, e.place, e.kill, e.replace} {
		for _, v := range variants {
			if err := step(ctx, v); err != nil {
				return err
			}
		}
	}
	// The rows are last. When they have fired, the other timers are overdue by the same time.
	for i := range variants {
		if err := e.judge(ctx, variants[len(variants)-1-i]); err != nil {
			return err
		}
	}
	return nil
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
func (e *timersRun) start(ctx context.Context, v *timersVariant) error {
	level := stock.Level{SKU: v.sku(), Strategy: "conditional", OnHand: int64(e.orders)}
	if _, _, err := e.records.CreateSKU(ctx, level); err != nil {
		return err
	}
	for _, p := range []struct {
		process **Process
		name    string
		orders  int
	}{{&v.first, v.kind + ", first", e.orders}, {&v.second, v.kind + ", second", 0}} {
		task := e.task("name", p.name, "kind", v.kind, "sku", v.sku(), "orders", strconv.Itoa(p.orders))
		started, err := e.r.Start(ctx, p.name, task)
		if err != nil {
			return err
		}
		*p.process = started
		e.picture.row(p.name)
		if _, err := started.Until(ctx, pointReady); err != nil {
			return err
		}
	}
	return nil
}

// place lets the first process place orders.
func (e *timersRun) place(ctx context.Context, v *timersVariant) error {
	placed, err := v.first.To(ctx, pointPlaced)
	if err != nil {
		return err
	}
	v.placed = placed.At
	e.r.Step("%s: places %d orders for all units; nobody pays, and each order expires after %v", v.first.Name, e.orders, timersTTL)
	if v.kind == inMemory { // it is killed before they expire; the others have the time for it that they need
		return e.kill(ctx, v)
	}
	return nil
}

// kill kills the first process when it has the timers and has not fired them.
func (e *timersRun) kill(ctx context.Context, v *timersVariant) error {
	if v.killed {
		return nil
	}
	what := fmt.Sprintf("killed while its %d timers wait", e.orders)
	if v.kind != inMemory {
		claimed, err := v.first.Until(ctx, pointClaimed)
		if err != nil {
			return err
		}
		e.picture.Mark(v.first.Name, claimed.At, Neutral, claimed.Value+" timers are due, and this process claims them")
		what = fmt.Sprintf("killed: it has claimed %s timers, and released nothing", claimed.Value)
	}
	if err := v.first.Kill(); err != nil {
		return err
	}
	at := time.Now()
	v.killed = true
	e.picture.Span(v.first.Name, v.placed, at, Holds, "timers wait")
	e.picture.Mark(v.first.Name, at, Stale, what)
	e.r.Step("%s: %s", v.first.Name, what)
	return nil
}

// replace lets the second process consume the timers that it finds.
func (e *timersRun) replace(ctx context.Context, v *timersVariant) error {
	found, err := v.second.To(ctx, pointFound)
	if err != nil {
		return err
	}
	v.since, v.found = found.At, found.Value
	e.r.Step("%s: takes over, and finds %s timers", v.second.Name, v.found)
	return nil
}

// judge checks the fates of the orders. It waits for the timers that are rows.
func (e *timersRun) judge(ctx context.Context, v *timersVariant) error {
	fired, early, twice := 0, 0, 0
	var latest time.Duration
	look := func() (bool, error) {
		now, fates, err := e.records.Fates(ctx, v.sku())
		if err != nil {
			return false, err
		}
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
		return fired == e.orders || v.kind != inRows || now.After(fates[0].ExpiresAt.Add(timersPatience)), nil
	}
	if err := Await(ctx, "the second process releases all orders of "+v.sku(), look); err != nil {
		return err
	}
	customer, err := e.buy(ctx, v.sku())
	if err != nil {
		return err
	}
	e.r.Step("%s: released %d of %d orders; the next customer is %s", v.second.Name, fired, e.orders, customer)
	e.r.Measure("timers that never fire: "+v.kind, float64(e.orders-fired), "timers")
	if v.kind != inRows {
		e.picture.Span(v.second.Name, v.since, time.Now(), Stale, fmt.Sprintf("finds %s timers: the units stay reserved", v.found))
		e.r.Effect(fired == 0 && v.found == "0" && customer == outOfStock, "%s: %d of %d timers are lost, and the next customer is %s", v.kind, e.orders-fired, e.orders, customer)
		return nil
	}
	e.picture.Span(v.second.Name, v.since, time.Now(), Waits, fmt.Sprintf("finds %s rows, scans for overdue ones", v.found))
	e.picture.Mark(v.second.Name, time.Now(), kindOf(fired == e.orders), fmt.Sprintf("%d of %d orders released", fired, e.orders))
	e.r.Measure("latest release after its expiry: "+v.kind, milliseconds(latest), "ms")
	e.r.Cure(fired == e.orders && early == 0 && twice == 0 && customer == accepted,
		"%s: %d of %d timers fired, %d early and %d twice; the next customer's order is %s", v.kind, fired, e.orders, early, twice, customer)
	return nil
}

// buy attempts to buy one unit.
func (s *stores) buy(ctx context.Context, sku string) (string, error) {
	request := oneUnit("next customer", sku, time.Hour)
	err := s.records.Commit(ctx, &order.Batch{Claims: []stock.Claim{{SKU: sku, Update: stock.Conditional}}, Requests: []*order.Request{request}})
	if err == nil {
		err = request.Err
	}
	return outcome(err)
}

// oneUnit is the request of a customer for one unit.
func oneUnit(customer, sku string, ttl time.Duration) *order.Request {
	return &order.Request{
		Order: order.Order{ID: order.NewID(), CustomerID: customer, Items: []order.Item{{SKU: sku, Quantity: 1}}},
		TTL:   ttl,
	}
}
