package lab

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// lateCheckWorker sells as the shop does, or with a token that is compared only at the write, if its task has check=late.
func lateCheckWorker(ctx context.Context, w *Worker) {
	if w.Task["check"] != "late" {
		orderWorker(ctx, w)
		return
	}
	w.at(pointReady, "")
	lease := acquire(ctx, w, w.Task["sku"])
	w.at(pointLocked, fmt.Sprint(lease.Fence().Token))
	store := w.store(ctx)
	defer store.Close()
	level := must(store.Level(ctx, w.Task["sku"]))
	w.at(pointWrites, "")
	w.at(pointDone, outcome(checkLate(ctx, w, level, lease.Fence())))
}

// checkLate takes one unit from a level that was read before, and compares the token only at the write.
func checkLate(ctx context.Context, w *Worker, level stock.Level, fence dlock.Fence) error {
	if level.Reserved >= level.OnHand {
		return &stock.ShortageError{}
	}
	tx := begin(ctx, w)
	defer tx.Rollback() //nolint:errcheck // it has been committed, or the error that counts is returned
	result := must(tx.ExecContext(ctx, "UPDATE skus SET reserved = ?, fence = ?, fence_owner = ? WHERE sku = ? AND fence <= ?",
		level.Reserved+1, int64(fence.Token), fence.Owner, level.SKU, int64(fence.Token)))
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(dlock.ErrFenced, err)
	}
	insertOrder(ctx, tx, w.Task["name"], level.SKU, fence.Token)
	return tx.Commit()
}

// begin begins a transaction on the SQLite file of a task, without the store. Its connection ends with the process.
func begin(ctx context.Context, w *Worker) *sql.Tx {
	db := must(sql.Open("sqlite", strings.TrimPrefix(w.Task["database"], "sqlite:")))
	return must(db.BeginTx(ctx, nil))
}

// insertOrder stores an order of one unit, and nothing of the level.
func insertOrder(ctx context.Context, tx *sql.Tx, customer, sku string, token uint64) {
	id := order.NewID()
	for _, insert := range []struct {
		statement string
		args      []any
	}{
		{"INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES (?, ?, 'PENDING', '', 0, 9000000000000000)", []any{id, customer}},
		{"INSERT INTO order_lines VALUES (?, ?, 1)", []any{id, sku}},
		{
			"INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES (?, ?, 'RESERVE', 1, 0, 1, ?, ?, 0)",
			[]any{sku, id, int64(token), customer},
		},
	} {
		must(tx.ExecContext(ctx, insert.statement, insert.args...))
	}
}

// lateCheckTTL is the TTL that the paused holder exceeds.
const lateCheckTTL = time.Second

// checked is a sale of the last unit by two holders of a lease, of which the first is paused beyond its TTL.
type checked struct {
	name, check string
	a, b        *Process
	locked      Report // of A
	read        Report // B has read, and is about to write
	resumed     time.Time
	done        [2]Report // of A, and of B
	audit       stock.Audit
}

func runLateCheck(ctx context.Context, r *Run) {
	s := r.open(ctx)
	late, locked := &checked{name: "late check", check: "late"}, &checked{name: "locked row"}
	both := []*checked{late, locked}
	for _, c := range both {
		c.lock(ctx, s)
	}
	for _, c := range both {
		c.a.Pause()
	}
	r.Step("1 unit is left. Process A of each pair has the lease, and is paused beyond its TTL of %v", lateCheckTTL)
	late.sell(ctx, s)
	locked.sell(ctx, s)
	picture := &Picture{Title: "1 unit: B has read it when A resumes and writes", Legend: Legend{
		Holds: "the right outcome", Stale: "ends in a lost update", Waits: "waits for the row", Paused: "paused", Neutral: "reads",
	}}
	for _, c := range both {
		c.draw(picture, late.read.At)
		r.Measure("orders for 1 unit: "+c.name, float64(c.audit.Accepted()), "orders")
		r.Measure("lost updates: "+c.name, float64(c.audit.LostUpdates()), "units")
	}
	r.Draw(picture)
	r.Effect(late.done[0].Value == accepted && late.done[1].Value == accepted && late.audit.LostUpdates() == 1,
		"with a check at the write alone, both tokens passed, and %d update was lost", late.audit.LostUpdates())
	r.Cure(locked.done[0].Value == staleToken && locked.done[1].Value == accepted && locked.audit.OK(),
		"with the row locked from check to commit, the late order was %s", locked.done[0].Value)
}

// lock has A hold the lease, and B ready.
func (c *checked) lock(ctx context.Context, s *stores) {
	s.stock(ctx, c.name, "redis", 1)
	start := func(name, stop string) *Process {
		return s.r.Start(ctx, c.name+": "+name, s.task("name", name, "sku", c.name, "check", c.check, "update", fmt.Sprint(int(stock.Fenced)),
			"ttl", lateCheckTTL.String(), "stop", stop))
	}
	c.b = start("B", pointReady+","+pointWrites)
	c.b.Until(ctx, pointReady)
	c.a = start("A", pointLocked)
	c.locked = c.a.Until(ctx, pointLocked)
}

// sell has B read, then A write late, and then B write.
func (c *checked) sell(ctx context.Context, s *stores) {
	next := c.b.To(ctx, pointLocked)
	c.read = c.b.Until(ctx, pointWrites)
	var tokens grants
	tokens.add(c.locked.Value)
	tokens.add(next.Value)
	s.r.Step("%s: the lease of A (token %s) has expired. B (token %s) reads that 1 unit is left, and is about to write", c.name, tokens.ordinal(c.locked.Value), tokens.ordinal(next.Value))
	c.resumed = time.Now()
	c.a.Resume()
	if c.check == "late" {
		c.done[0] = c.a.To(ctx, pointDone)
		s.r.Step("%s: A resumes, and writes with its old token: %s, for the row has stored no other token yet", c.name, c.done[0].Value)
		c.done[1] = c.b.To(ctx, pointDone)
		s.r.Step("%s: B writes what follows from its read: %s. It hides the order of A", c.name, c.done[1].Value)
	} else {
		c.a.To(ctx, pointRead)
		s.r.Step("%s: A resumes, and asks for the row. It waits, because B has the row locked since before its read", c.name)
		c.done[1] = c.b.To(ctx, pointDone)
		c.done[0] = c.a.Until(ctx, pointDone)
		s.r.Step("%s: B writes: %s. Then A gets the row, which has the token of B: %s", c.name, c.done[1].Value, c.done[0].Value)
	}
	c.audit = s.audit(ctx, c.name)
}

// draw shows the moments around the write of A. The time of both pairs counts from the read of B.
func (c *checked) draw(p *Picture, zero time.Time) {
	a, b := c.name+": A", c.name+": B"
	at := func(t time.Time) time.Time { return zero.Add(t.Sub(c.read.At)) }
	p.Later(a, c.read.At.Sub(zero))
	p.Later(b, c.read.At.Sub(zero))
	p.Span(a, zero.Add(-10*time.Millisecond), at(c.resumed), Paused, "A is paused, its lease is over")
	kind, label := Stale, ""
	if c.check == "" {
		kind, label = Waits, "A waits for the row"
	}
	p.Span(a, at(c.resumed), at(c.done[0].At), kind, label)
	p.Mark(a, at(c.done[0].At), kindOf(c.done[0].Value != accepted), "write with the old token: "+c.done[0].Value)
	p.Mark(b, zero, Neutral, "read: 1 unit is left")
	p.Span(b, zero, at(c.done[1].At), kindOf(c.audit.OK()), "")
	p.Mark(b, at(c.done[1].At), kindOf(c.audit.OK()), "write with the new token: "+c.done[1].Value)
}
