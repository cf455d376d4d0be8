package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// A holder whose lease has expired writes before the new holder reads: the new holder sees the write. After that, the
// old holder is refused.
func TestLateWriteBeforeTheReadIsSeen(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		ctx, s := t.Context(), open(t, database, "one")
		create(t, s, "a", "redis", 10)
		place := func(token uint64) error {
			return s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Fenced, fence(token)), Requests: []*order.Request{request(1, "a")}})
		}
		for _, token := range []uint64{1, 2} { // 2 was issued before 1 wrote
			if err := place(token); err != nil {
				t.Fatalf("fence %d: %v", token, err)
			}
		}
		if err := place(1); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("the old holder once more: %v, want ErrFenced", err)
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 2 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

// A holder whose lease has expired writes between the new holder's read and its write: it is refused.
func TestLateWriteBetweenReadAndWriteIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		ctx, s := t.Context(), open(t, database, "one")
		create(t, s, "a", "redis", 10)
		g, old := newGate(gate{before: "UPDATE skus SET reserved"}), newGate(gate{before: locksSKU})
		close(old.opened)
		newer, older := open(t, database, "new", g), open(t, database, "old", old)
		results := make(chan error, 2)
		go func() {
			results <- newer.Commit(ctx, &order.Batch{Claims: claim("a", stock.Fenced, fence(2)), Requests: []*order.Request{request(2, "a")}})
		}()
		wait(t, "the new holder to have read", g.reached)
		late := make(chan error, 1)
		go func() {
			late <- older.Commit(ctx, &order.Batch{Claims: claim("a", stock.Fenced, fence(1)), Requests: []*order.Request{request(1, "a")}})
		}()
		if !strings.HasPrefix(database, "sqlite:") { // there it cannot even begin
			wait(t, "the old holder to ask for the row", old.reached)
		}
		close(g.opened)
		if err := <-results; err != nil {
			t.Errorf("the new holder: %v", err)
		}
		if err := <-late; !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("the old holder: %v, want ErrFenced", err)
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 2 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

// The life of an order begins with its lock of the row. So the wait for the row takes no time from its customer.
func TestWaitingForTheRowTakesNoTimeFromTheOrder(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	ctx, s, db := t.Context(), open(t, database, "one"), rawDB(t, database)
	for _, w := range []stock.Update{stock.Fenced, stock.RowLock} {
		sku := fmt.Sprintf("held-for-write-%d", w)
		create(t, s, sku, "redis", 10)
		s := open(t, database, "two") // reads the row before, to see whether it has a limit
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "UPDATE skus SET version = version + 1 WHERE sku = ?", sku); err != nil {
			t.Fatal(err)
		}
		r, done := request(1, sku), make(chan error, 1)
		go func() {
			done <- s.Commit(ctx, &order.Batch{Claims: claim(sku, w, fence(1)), Requests: []*order.Request{r}})
		}()
		const waits = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE ?"
		end := time.Now().Add(time.Minute)
		for n := 0; n == 0; time.Sleep(200 * time.Millisecond) { // the table is as of 100 ms after it was last read
			if err := db.QueryRowContext(ctx, waits, "%"+sku+"%").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(end) {
				t.Fatal("waited a minute for the order to wait for the row")
			}
		}
		var free int64
		if err := db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&free); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		if late := r.Order.CreatedAt.UnixMicro() - free; late < 0 {
			t.Errorf("write %d: the order is %d us older than the row was free", w, -late)
		}
	}
}

// The same number from another owner is refused: a Redis that failed over to a
// lagging replica can issue a token twice.
func TestEqualTokenOfAnotherOwnerIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		ctx, s := t.Context(), open(t, database, "one")
		create(t, s, "a", "redis", 10)
		f := dlock.Fence{Token: 7, Owner: "first"}
		if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Fenced, f), Requests: []*order.Request{request(1, "a")}}); err != nil {
			t.Fatal(err)
		}
		f.Owner = "second"
		if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Fenced, f), Requests: []*order.Request{request(1, "a")}}); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("another owner: %v, want ErrFenced", err)
		}
		f.Owner = "first"
		if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Fenced, f), Requests: []*order.Request{request(1, "a")}}); err != nil {
			t.Errorf("the same owner again: %v", err)
		}
	})
}

// lateChecked places an order as a store would that compares the fence only
// when it writes. between runs after its read.
func lateChecked(ctx context.Context, db *sql.DB, sku string, token int64, between func() error) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreDone(tx.Rollback())) }()
	var reserved int64
	if err := tx.QueryRowContext(ctx, "SELECT reserved FROM skus WHERE sku = ?", sku).Scan(&reserved); err != nil {
		return err
	}
	if err := between(); err != nil {
		return err
	}
	r, err := tx.ExecContext(ctx, "UPDATE skus SET reserved = ?, fence = ? WHERE sku = ? AND fence <= ?", reserved+1, token, sku, token)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(dlock.ErrFenced, err)
	}
	id := order.NewID()
	for statement, args := range map[string][]any{
		"INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES (?, 'c', 'PENDING', '', 0, 9000000000000000)": {id},
		"INSERT INTO order_lines VALUES (?, ?, 1)": {id, sku},
		"INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES (?, ?, 'RESERVE', 1, 0, 1, ?, 'i', 0)": {sku, id, token},
	} {
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// A fence that is compared only at the write lets both holders pass in this order, and a unit is lost. The row lock
// prevents this mutant, and the audit finds it.
func TestFenceCheckedOnlyAtTheWriteLosesAnUpdate(t *testing.T) {
	t.Parallel()
	rawURL := testbedtest.Database(t)
	ctx, s := t.Context(), open(t, rawURL, "one")
	create(t, s, "a", "redis", 10)
	db := rawDB(t, rawURL)
	err := lateChecked(ctx, db, "a", 2, func() error {
		return lateChecked(ctx, db, "a", 1, func() error { return nil })
	})
	if err != nil {
		t.Fatalf("one of the two was refused: %v", err)
	}
	if a := auditOf(t, s, "a"); a.OK() || a.LostUpdates() != 1 {
		t.Errorf("the audit did not notice: %+v", a)
	}
}
