package lab

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// payTTL is how long the orders of the lab wait for payment: long enough that a process which waits for them reads them in time.
const payTTL = time.Second

func runPayOrExpire(ctx context.Context, r *Run) {
	s := r.open(ctx)
	e := &payRun{stores: s, picture: r.Draw(&Picture{
		Title:  "one unit: the order expires between the check of the payment and its write",
		Legend: Legend{Holds: "the right outcome", Stale: "a second customer pays for one unit", Waits: "waits for the payment, or for the bank", Neutral: "expires"},
	})}
	audit, payer := e.late(ctx, "textbook", roleTextbook)
	r.Measure("paid for 1 unit: textbook", float64(audit.Sold), "customers")
	r.Effect(payer == paid && audit.Sold == 2 && audit.TwoFates == 1, "textbook: %d customers have paid for 1 unit, as %d order was both released and paid", audit.Sold, audit.TwoFates)
	audit, payer = e.late(ctx, "row lock", rolePay)
	r.Measure("paid for 1 unit: row lock", float64(audit.Sold), "customers")
	r.Cure(payer == refusedAs(order.Expired) && audit.Sold == 1 && audit.OK(), "row lock: the late payment is %s; paid for 1 unit: %s", payer, count(int(audit.Sold), "customer"))
	e.early(ctx)
	e.race(ctx)
}

// payRun is one run of the lab.
type payRun struct {
	*stores

	picture *Picture
}

// start starts a process with a role at a SKU. It waits.
func (e *payRun) start(ctx context.Context, name, sku, role string, more ...string) *Process {
	return e.r.ready(ctx, name, e.task(append(more, "name", name, "sku", sku, "role", role)...))
}

// place places orders of one unit each, in one transaction. They expire at the same time.
func place(ctx context.Context, store *sqlstore.Store, sku string, n int, ttl time.Duration) (orders []order.Order) {
	batch := &order.Batch{Claims: []stock.Claim{{SKU: sku, Update: stock.Conditional}}}
	for i := range n {
		batch.Requests = append(batch.Requests, oneUnit(fmt.Sprint("customer-", i+1), sku, ttl))
	}
	check(store.Commit(ctx, batch))
	for _, request := range batch.Requests {
		check(request.Err)
		orders = append(orders, request.Order)
	}
	return orders
}

// late has a payment that stops after its check until the order has expired, and another customer has bought the unit. It returns
// what became of the payment.
func (e *payRun) late(ctx context.Context, name, role string) (audit stock.Audit, payer string) {
	sku := "late-" + role
	e.stock(ctx, sku, "conditional", 1)
	payment := e.start(ctx, name+": payment", sku, role, "stop", pointRead)
	timer := e.start(ctx, name+": timer", sku, roleTimer)
	place(ctx, e.records, sku, 1, payTTL)
	began := time.Now()
	read := payment.To(ctx, pointRead)
	e.r.Step("%s: reads that the order is %s, and calls the bank", payment.Name, read.Value)
	expired := timer.To(ctx, pointDone)
	e.r.Step("%s: the order is %s now, and its unit is for sale again", timer.Name, expired.Value)
	e.picture.Span(timer.Name, began, expired.At, Waits, "the order waits for payment")
	e.picture.Mark(timer.Name, expired.At, Neutral, "EXPIRED, unit released")
	e.sellAgain(ctx, name+": next", sku)
	done := payment.To(ctx, pointDone)
	e.r.Step("%s: the bank has answered, and the payment is %s", payment.Name, done.Value)
	e.picture.Span(payment.Name, read.At, done.At, Waits, "reads "+read.Value+", calls the bank")
	e.picture.Mark(payment.Name, done.At, kindOf(done.Value != paid), "the payment is "+done.Value)
	return e.audit(ctx, sku), done.Value
}

// sellAgain sells the unit that was released.
func (e *payRun) sellAgain(ctx context.Context, row, sku string) {
	next := place(ctx, e.records, sku, 1, time.Hour)
	said := pay(ctx, e.records, next[0].ID, "payment of the next customer")
	e.r.Step("%s customer: buys the released unit, and the payment is %s", row, said)
	e.picture.Mark(row, time.Now(), Holds, "another customer buys the unit: "+said)
}

// early has a payment that is stored before the order expires, and then the timer.
func (e *payRun) early(ctx context.Context) {
	const sku = "early"
	e.stock(ctx, sku, "conditional", 1)
	timer := e.start(ctx, "paid first: timer", sku, roleTimer)
	orders := place(ctx, e.records, sku, 1, payTTL)
	said := pay(ctx, e.records, orders[0].ID, "payment in time")
	await(ctx, "the time of the order is over", func() bool {
		now, fates := fatesOf(ctx, e.records, sku)
		return now.After(fates[0].ExpiresAt)
	})
	fired := timer.To(ctx, pointDone)
	audit := e.audit(ctx, sku)
	e.r.Step("the other order of events: the payment is %s, then the timer fires, finds the order %s, and releases nothing", said, fired.Value)
	e.r.Cure(said == paid && fired.Value == string(order.Confirmed) && audit.Sold == 1 && audit.OK(), "paid first: the timer finds the order %s, and releases nothing", fired.Value)
}

// race has two payments and two timers at each of many orders, around the moment at which they expire.
func (e *payRun) race(ctx context.Context) {
	const sku = "race"
	n := e.r.Size(40, 200)
	e.stock(ctx, sku, "conditional", n)
	var processes []*Process
	for i, role := range []string{roleRace, roleRace, roleTimer, roleTimer} {
		processes = append(processes, e.start(ctx, fmt.Sprintf("race: %s %d", role, i%2+1), sku, role))
	}
	place(ctx, e.records, sku, n, payTTL)
	for _, p := range processes {
		p.Continue()
	}
	for _, p := range processes {
		p.Until(ctx, pointDone)
	}
	_, fates := fatesOf(ctx, e.records, sku)
	e.judgeRace(fates, e.audit(ctx, sku))
}

func (e *payRun) judgeRace(fates []sqlstore.Fate, audit stock.Audit) {
	paidOrders, released, other := 0, 0, 0
	for _, f := range fates {
		switch {
		case f.Payments == 1 && f.Releases == 0:
			paidOrders++
		case f.Releases == 1 && f.Payments == 0:
			released++
		default:
			other++
		}
	}
	e.r.Step("race: two payments and two timers at each of %d orders: %d are paid, %d are released, %d are neither or both", len(fates), paidOrders, released, other)
	e.r.Measure("race: orders that are paid", float64(paidOrders), "orders")
	e.r.Measure("race: orders that are released", float64(released), "orders")
	e.r.Measure("race: orders that are neither, or both", float64(other), "orders")
	e.r.Cure(other == 0 && audit.OK(), "race: each of %d orders is settled exactly once by two payments and two timers", len(fates))
}
