package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// perTransaction is how many orders a transaction inserts.
const perTransaction = 2000

// tables are the beginnings of the statements of a transaction.
var tables = [...]string{
	"INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at, reason) VALUES ",
	"INSERT INTO order_lines (order_id, sku, quantity) VALUES ",
	"INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES ",
}

// fill inserts settled orders of SKUs that it creates.
func fill(ctx context.Context, s *sqlstore.Store, url string, orders, skus int) (err error) {
	d, err := sqldb.Open(ctx, url, sqldb.AccessChange)
	if err != nil {
		return err
	}
	db := sql.OpenDB(d.Unhurried)
	defer func() { err = errors.Join(err, db.Close()) }()
	for i := range skus {
		if _, _, err := s.CreateSKU(ctx, stock.Level{SKU: name(i), Strategy: "conditional", OnHand: 1 << 40}); err != nil {
			return err
		}
	}
	start := time.Now().Add(-30 * 24 * time.Hour)
	step := 29 * 24 * time.Hour / time.Duration(orders)
	for from := 0; from < orders; from += perTransaction {
		var rows [len(tables)]strings.Builder
		sold := make(map[string]int)
		for i := from; i < min(from+perTransaction, orders); i++ {
			one(&rows, sold, i, skus, start.Add(time.Duration(i)*step))
		}
		if err := insert(ctx, db, &rows, sold); err != nil {
			return err
		}
	}
	if d.Dialect == "mysql" {
		_, err = db.ExecContext(ctx, "ANALYZE TABLE orders, order_lines, ledger")
	}
	return err
}

func name(sku int) string { return fmt.Sprint("aged-", sku) }

// one adds the rows of the order with number i to rows, and the units that were paid for to sold.
func one(rows *[len(tables)]strings.Builder, sold map[string]int, i, skus int, at time.Time) {
	id := fmt.Sprintf("%012x", at.UnixMilli())
	id = fmt.Sprintf("%s-%s-7%03x-8000-%012x", id[:8], id[8:], i>>48, i)
	status, movement, onHand := [...]string{"CONFIRMED", "EXPIRED", "CANCELLED"}[i%3], "RELEASE", 0
	if status == "CONFIRMED" {
		movement, onHand = "CONFIRM", -1
	}
	add := func(table int, format string, args ...any) {
		if rows[table].Len() > 0 {
			rows[table].WriteString(", ")
		}
		fmt.Fprintf(&rows[table], format, args...)
	}
	micros := at.UnixMicro()
	add(0, "('%s', 'customer-%d', '%s', '', %d, %d, '')", id, i%(1+i/10), status, micros, micros+900_000_000)
	for n := range 1 + i%2 {
		sku := name((i + n) % skus)
		add(1, "('%s', '%s', 1)", id, sku)
		add(2, "('%s', '%s', 'RESERVE', 1, 0, 1, 0, 'aged', %d)", sku, id, micros)
		add(2, "('%s', '%s', '%s', 1, %d, -1, 0, 'aged', %d)", sku, id, movement, onHand, micros+1_000_000)
		sold[sku] -= onHand
	}
}

// insert inserts rows in a transaction.
func insert(ctx context.Context, db *sql.DB, rows *[len(tables)]strings.Builder, sold map[string]int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	for i, into := range tables {
		if _, err := tx.ExecContext(ctx, into+rows[i].String()); err != nil {
			return err
		}
	}
	for sku, units := range sold {
		if _, err := tx.ExecContext(ctx, "UPDATE skus SET on_hand = on_hand - ?, version = version + 1 WHERE sku = ?", units, sku); err != nil {
			return err
		}
	}
	return tx.Commit()
}
