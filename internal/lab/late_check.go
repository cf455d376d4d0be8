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

func lateCheckLab() Lab {
	return Lab{
		Number: 9, Name: "late-check", Title: "A token checked too late",
		Question: "Each write carries its fencing token, and the database refuses a smaller one. Is the stock safe now?",
		Expect: "Not if the new holder reads before the late holder writes. Both tokens pass their check, and the second write hides the first. " +
			"If the row is locked before it is read, the late holder is refused.",
		Why: "The check at the write compares tokens, not what was read. The token of the new holder protects the row only from the moment at which it is " +
			"stored. Between the read and the write of the new holder, the row still accepts the previous token.",
		Cure: "Lock the row, compare the token, read the level and write both in one transaction. A late write is then either before the read, and the new " +
			"holder sees it, or after the write, and is refused.",
		Links: []Link{
			{"the check under the lock of the row", "internal/sqlstore/fenced.go"},
			{"the tests of both orders, and of the late check", "internal/sqlstore/blackbox/late_write_test.go"},
			{"the rule for tokens", "internal/dlock/dlock.go"},
		},
		Exercises: [3]string{
			"Let the new holder store its token before it reads, in a statement of its own. Does that cure the late check?",
			"Add the column version to the WHERE of the late check. Which of the two holders is refused now?",
			"The store of your files supports only \"write if the token is not smaller\". What must the holder do before it reads?",
		},
		run: runLateCheck, worker: lateCheckWorker,
	}
}

// lateCheckWorker sells as the product does, or with a token that is compared only at the write, if its task has check=late.
func lateCheckWorker(ctx context.Context, w *Worker) error {
	if w.Task["check"] != "late" {
		return orderWorker(ctx, w)
	}
	if err := w.at(pointReady, ""); err != nil {
		return err
	}
	lease, err := acquire(ctx, w, w.Task["sku"])
	if err != nil {
		return err
	}
	if err := w.at(pointLocked, "%d", lease.Fence().Token); err != nil {
		return err
	}
	store, err := w.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	level, err := store.Level(ctx, w.Task["sku"])
	if err != nil {
		return err
	}
	if err := w.at(pointWrites, ""); err != nil {
		return err
	}
	said, err := outcome(checkLate(ctx, w, level, lease.Fence()))
	if err != nil {
		return err
	}
	return w.at(pointDone, "%s", said)
}

// checkLate takes one unit from a level that was read before, and compares the token only at the write.
func checkLate(ctx context.Context, w *Worker, level stock.Level, fence dlock.Fence) (err error) {
	if level.Reserved >= level.OnHand {
		return &stock.ShortageError{}
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(w.Task["database"], "sqlite:"))
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it has been committed, or the error that counts is returned
	result, err := tx.ExecContext(ctx, "UPDATE skus SET reserved = ?, fence = ?, fence_owner = ? WHERE sku = ? AND fence <= ?",
		level.Reserved+1, int64(fence.Token), fence.Owner, level.SKU, int64(fence.Token))
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(dlock.ErrFenced, err)
	}
	id := order.NewID()
	for _, insert := range []struct {
		statement string
		args      []any
	}{
		{"INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES (?, ?, 'PENDING', '', 0, 9000000000000000)", []any{id, w.Task["name"]}},
		{"INSERT INTO order_lines VALUES (?, ?, 1)", []any{id, level.SKU}},
		{
			"INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES (?, ?, 'RESERVE', 1, 0, 1, ?, ?, 0)",
			[]any{level.SKU, id, int64(fence.Token), w.Task["name"]},
		},
	} {
		if _, err := tx.ExecContext(ctx, insert.statement, insert.args...); err != nil {
			return err
		}
	}
	return tx.Commit()
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

func runLateCheck(ctx context.Context, r *Run) error {
	s, err := r.open(ctx)
	if err != nil {
		return err
	}
	late, locked := &checked{name: "late check", check: "late"}, &checked{name: "locked row"}
	both := []*checked{late, locked}
	for _, c := range both {
		if err := c.lock(ctx, s); err != nil {
			return err
		}
	}
	for _, c := range both {
		if err := c.a.Pause(); err != nil {
			return err
		}
	}
	r.Step("1 unit is left. Process A of each pair has the lease, and is paused beyond its TTL of %v", lateCheckTTL)
	if err := late.sell(ctx, s); err != nil {
		return err
	}
	if err := locked.sell(ctx, s); err != nil {
		return err
	}
	picture := &Picture{Title: "1 unit: B has read it when A resumes and writes"}
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
	return nil
}

// lock has A hold the lease, and B ready.
func (c *checked) lock(ctx context.Context, s *stores) error {
	if _, _, err := s.records.CreateSKU(ctx, stock.Level{SKU: c.name, Strategy: "redis", OnHand: 1}); err != nil {
		return err
	}
	start := func(name, stop string) (*Process, error) {
		return s.r.Start(ctx, c.name+": "+name, s.task("name", name, "sku", c.name, "check", c.check, "update", fmt.Sprint(int(stock.Fenced)),
			"ttl", lateCheckTTL.String(), "stop", stop))
	}
	var err error
	if c.b, err = start("B", pointReady+","+pointWrites); err != nil {
		return err
	}
	if _, err = c.b.Until(ctx, pointReady); err != nil {
		return err
	}
	if c.a, err = start("A", pointLocked); err != nil {
		return err
	}
	c.locked, err = c.a.Until(ctx, pointLocked)
	return err
}

// sell has B read, then A write late, and then B write.
func (c *checked) sell(ctx context.Context, s *stores) error {
	next, err := c.b.To(ctx, pointLocked)
	if err != nil {
		return err
	}
	if c.read, err = c.b.Until(ctx, pointWrites); err != nil {
		return err
	}
	s.r.Step("%s: the lease of A (token %s) has expired. B (token %s) reads that 1 unit is left, and is about to write", c.name, c.locked.Value, next.Value)
	c.resumed = time.Now()
	if err := c.a.Resume(); err != nil {
		return err
	}
	if c.check == "late" {
		if c.done[0], err = c.a.To(ctx, pointDone); err != nil {
			return err
		}
		s.r.Step("%s: A resumes, and writes with its old token: %s, for the row has stored no other token yet", c.name, c.done[0].Value)
		if c.done[1], err = c.b.To(ctx, pointDone); err != nil {
			return err
		}
		s.r.Step("%s: B writes what follows from its read: %s. It hides the order of A", c.name, c.done[1].Value)
	} else {
		if _, err = c.a.To(ctx, pointRead); err != nil {
			return err
		}
		s.r.Step("%s: A resumes, and asks for the row. It waits, because B has the row locked since before its read", c.name)
		if c.done[1], err = c.b.To(ctx, pointDone); err != nil {
			return err
		}
		if c.done[0], err = c.a.Until(ctx, pointDone); err != nil {
			return err
		}
		s.r.Step("%s: B writes: %s. Then A gets the row, which has the token of B: %s", c.name, c.done[1].Value, c.done[0].Value)
	}
	c.audit, err = s.audit(ctx, c.name)
	return err
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
