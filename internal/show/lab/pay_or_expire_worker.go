package lab

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
)

// The roles of the workers around a payment.
const (
	roleTextbook = "textbook" // pays one order as two steps: check, and later write
	rolePay      = "pay"      // pays one order as the shop does; it has read the order before
	roleTimer    = "timer"    // expires all orders as soon as they are due
	roleRace     = "payment"  // pays all orders, around the moment at which they expire
)

// The outcomes of a payment.
const paid = "accepted"

func refusedAs(s order.Status) string { return fmt.Sprintf("refused: the order is %s", s) }

// payOrExpireWorker pays or expires the orders of a SKU, which exist when it continues after pointReady.
func payOrExpireWorker(ctx context.Context, w *Worker) {
	c := sqlstore.Config{URL: w.Task["database"], Instance: w.Task["name"]}
	if w.Task["stop"] == pointRead && w.Task["role"] == rolePay {
		c.Plugins = append(c.Plugins, sqlstore.StopBefore(func() { w.Stops(pointRead, "%s", order.Pending) }))
	}
	store := must(sqlstore.Open(ctx, c))
	defer store.Close()
	w.Stops(pointReady, "")
	_, fates := fatesOf(ctx, store, w.Task["sku"])
	var said string
	switch w.Task["role"] {
	case roleTextbook:
		said = w.payTextbook(ctx, fates[0].OrderID)
	case rolePay:
		said = payOne(ctx, store, fates[0].OrderID)
	case roleTimer:
		said = expireAll(ctx, store, fates)
	case roleRace:
		w.payAll(ctx, store, fates)
	}
	w.Stops(pointDone, "%s", said)
}

// payTextbook checks an order, and writes what follows from that without another check. It stops in between.
func (w *Worker) payTextbook(ctx context.Context, id string) string {
	db := must(sql.Open("sqlite", "file:"+strings.TrimPrefix(w.Task["database"], "sqlite:")+"?_txlock=immediate&_pragma=busy_timeout(5000)"))
	defer db.Close()
	var status string
	var expires int64
	check(db.QueryRowContext(ctx, "SELECT status, expires_at FROM orders WHERE id = ?", id).Scan(&status, &expires))
	if status != string(order.Pending) || time.UnixMicro(expires).Before(time.Now()) {
		fail("the order is %s until %v: this process came too late to check it in time", status, time.UnixMicro(expires))
	}
	w.Stops(pointRead, "%s", status)
	tx := must(db.BeginTx(ctx, nil))
	defer tx.Rollback() //nolint:errcheck // it has been committed
	for _, c := range []struct {
		text string
		args []any
	}{
		{"UPDATE orders SET status = 'CONFIRMED', payment_id = 'late' WHERE id = ?", []any{id}},
		{"UPDATE skus SET on_hand = on_hand - 1, reserved = reserved - 1 WHERE sku = ?", []any{w.Task["sku"]}},
		{
			"INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES (?, ?, 'CONFIRM', 1, -1, -1, 0, ?, ?)",
			[]any{w.Task["sku"], id, w.Task["name"], time.Now().UnixMicro()},
		},
	} {
		must(tx.ExecContext(ctx, c.text, c.args...))
	}
	check(tx.Commit())
	return paid
}

// payOne reads an order, as the textbook does, and pays it as the shop does. Its store stops before the transaction.
func payOne(ctx context.Context, store *sqlstore.Store, id string) string {
	o := must(store.Order(ctx, id, ""))
	if o.Status != order.Pending {
		fail("the order is %s: this process came too late to read it in time", o.Status)
	}
	return pay(ctx, store, id, "late")
}

// pay pays an order, and names what became of that.
func pay(ctx context.Context, store *sqlstore.Store, id, payment string) string {
	o, changed, err := store.Settle(ctx, order.Target{ID: id}, order.Confirmed, payment)
	check(err)
	if changed {
		return paid
	}
	return refusedAs(o.Status)
}

// expireAll calls the transaction of the timers until all orders are final, and returns the state of the last one.
func expireAll(ctx context.Context, store *sqlstore.Store, fates []sqlstore.Fate) string {
	var ids []string
	for _, f := range fates {
		ids = append(ids, f.OrderID)
	}
	var last order.Status
	await(ctx, "all orders are final", func() bool {
		found := must(store.Expire(ctx, ids))
		last = found[len(found)-1].Status
		return !slices.ContainsFunc(found, func(e order.Expiry) bool { return e.Again > 0 || e.Status == order.Pending })
	})
	return string(last)
}

// payAll pays orders: the first quarter at once, the last quarter after the expiry, and the others around the moment of the expiry.
func (w *Worker) payAll(ctx context.Context, store *sqlstore.Store, fates []sqlstore.Fate) {
	for i, f := range fates {
		around := time.Duration(i-len(fates)/2) * time.Millisecond
		if i >= len(fates)/4 {
			<-time.After(time.Until(f.ExpiresAt.Add(around)))
		}
		pay(ctx, store, f.OrderID, w.Task["name"])
	}
}
