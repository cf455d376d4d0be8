package lab

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/stock"
)

func runLostUpdate(ctx context.Context, r *Run) {
	s := r.open(ctx)
	picture := r.Draw(&Picture{Title: "two processes, one unit: read, then write", Legend: Legend{
		Holds: "a good write, or a refusal", Stale: "hides the other write", Waits: "between read and write", Neutral: "reads",
	}})
	// sale lets first and second read before either writes, and returns what became of their orders.
	sale := func(strategy string, update stock.Update) (outcomes [2]string, audit stock.Audit) {
		sku := "last-" + strategy
		s.stock(ctx, sku, strategy, 1)
		point := pointReady
		if update.ReadsBefore() {
			point = pointRead
		}
		var processes [2]*Process
		var read [2]time.Time
		for i := range processes {
			name := fmt.Sprintf("%s, process %c", strategy, 'A'+i)
			processes[i] = r.Start(ctx, name, s.task("name", name, "sku", sku, "update", fmt.Sprint(int(update)), "stop", point))
			at := processes[i].Until(ctx, point)
			read[i] = at.At
			if point == pointRead {
				r.Step("%s has read that 1 unit is left, and stops before its transaction", name)
				picture.Mark(name, at.At, Neutral, "read: 1 unit left")
			}
		}
		backoff.Sleep(ctx, time.Duration(r.Size(100, 200))*time.Millisecond) // so that the picture separates read and write; nothing depends on it
		for i, p := range processes {
			done := p.To(ctx, pointDone)
			outcomes[i] = done.Value
			r.Step("%s continues: %s", p.Name, done.Value)
			picture.Span(p.Name, read[i], done.At, Waits, "")
			picture.Mark(p.Name, done.At, kindOf(i == 0 || done.Value != accepted), "write: "+done.Value)
		}
		return outcomes, s.audit(ctx, sku)
	}
	outcomes, audit := sale("naive", stock.WriteBack)
	r.Step("audit of naive: %d orders for 1 unit; the column says %d reserved, the ledger %d", audit.Accepted(), audit.Reserved, audit.LedgerReserved)
	r.Measure("lost updates: naive", float64(audit.LostUpdates()), "units")
	r.Effect(outcomes == [2]string{accepted, accepted} && audit.Oversold() == 1 && audit.LostUpdates() == 1,
		"both orders were accepted, and %d update was lost", audit.LostUpdates())
	for _, cure := range []struct {
		strategy string
		update   stock.Update
		want     string
	}{{"conditional", stock.Conditional, outOfStock}, {"optimistic", stock.Version, changed}} {
		outcomes, audit := sale(cure.strategy, cure.update)
		r.Measure("lost updates: "+cure.strategy, float64(audit.LostUpdates()), "units")
		r.Cure(outcomes == [2]string{accepted, cure.want} && audit.OK(), "%s: the second order was %s", cure.strategy, outcomes[1])
	}
}

func kindOf(good bool) Kind {
	if good {
		return Holds
	}
	return Stale
}
