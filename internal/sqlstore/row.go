package sqlstore

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// The rows of the schema. Times are microseconds since 1970.

type skuRow struct {
	SKU        string
	Strategy   string
	OnHand     int64
	Reserved   int64
	Version    int64
	Fence      int64
	FenceOwner string
	FenceBase  int64
	CreatedAt  int64 // read by nobody, but gorm allocates more for a column without a field
	Limit      int64 `gorm:"column:purchase_limit"`

	ReadAt int64 // the time of reading; no column
}

func (r skuRow) level() stock.Level {
	return stock.Level{
		SKU: r.SKU, Strategy: r.Strategy, OnHand: r.OnHand, Reserved: r.Reserved, Version: r.Version, Limit: r.Limit,
		Fence: dlock.Fence{Token: uint64(max(0, r.Fence)), Owner: r.FenceOwner},
		Base:  uint64(max(0, r.FenceBase)),
	}
}

type orderRow struct {
	ID         string
	CustomerID string
	Status     string
	PaymentID  string
	CreatedAt  int64
	ExpiresAt  int64
	Reason     string

	ReadAt int64 // the time of reading; no column
}

// late reports whether the order was open when its time was over, at r.ReadAt.
func (r orderRow) late() bool {
	return r.ExpiresAt <= r.ReadAt && (r.Status == string(order.Pending) || r.Status == string(order.Queued))
}

// order returns the order as it reads at r.ReadAt.
func (r orderRow) order(lines []lineRow) order.Order {
	o := order.Order{
		ID: r.ID, CustomerID: r.CustomerID, Status: order.Status(r.Status), PaymentID: r.PaymentID,
		Reason:    order.Reason(r.Reason),
		CreatedAt: time.UnixMicro(r.CreatedAt).UTC(), ExpiresAt: time.UnixMicro(r.ExpiresAt).UTC(),
	}
	switch {
	case r.late() && o.Status == order.Pending:
		o.Status = order.Expired
	case r.late():
		o.Status, o.Reason = order.Rejected, order.NotInTime
	}
	for _, l := range lines {
		o.Items = append(o.Items, order.Item{SKU: l.SKU, Quantity: l.Quantity})
	}
	return o
}

type lineRow struct {
	OrderID  string
	SKU      string
	Quantity int64
}

// readLevel reads the row of sku in tx.
func readLevel(tx *gorm.DB, sku string) (stock.Level, error) {
	row, err := readRow(tx, "SELECT * FROM "+oneRowOf, sku)
	return row.level(), err
}

const oneRowOf = "skus WHERE sku = ?"

// readRow runs a query for one row.
func readRow(tx *gorm.DB, query, sku string) (row skuRow, err error) {
	r := tx.Raw(query, sku).Scan(&row)
	if r.Error == nil && r.RowsAffected == 0 {
		return skuRow{}, fmt.Errorf("%w %q", stock.ErrNotFound, sku)
	}
	return row, r.Error
}

// moveRow applies m to the row of sku, relative to whatever it holds.
func moveRow(tx *gorm.DB, m stock.Movement, it order.Item) error {
	onHand, reserved := m.Delta(it.Quantity)
	r := tx.Exec("UPDATE skus SET on_hand = on_hand + ?, reserved = reserved + ?, version = version + 1 WHERE sku = ?",
		onHand, reserved, it.SKU)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected == 0 {
		return fmt.Errorf("%w %q", stock.ErrNotFound, it.SKU)
	}
	return nil
}
