package sqlstore

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// maxExamined is how many orders a page examines, so that a filter with few matches does not read all orders.
const maxExamined = 2000

// Orders implements [order.Store].
func (s *Store) Orders(ctx context.Context, f order.Filter) (order.Page, error) {
	p, err := s.page(ctx, f)
	if err != nil {
		return order.Page{}, s.translate(ctx, err)
	}
	return p, nil
}

// page first finds out how far back a page with a filter may look, and then reads what is
// there. Orders that are stored between the two lie before the page or inside it.
func (s *Store) page(ctx context.Context, f order.Filter) (order.Page, error) {
	db, q := s.db.WithContext(ctx), s.listing(f)
	var bounds []string
	if f.Status != "" || f.SKU != "" {
		bound := "SELECT " + q.id + " FROM " + q.first + q.where() + " ORDER BY " + q.id + " DESC LIMIT 2 OFFSET ?"
		if err := db.Raw(bound, append(q.args, maxExamined-1)...).Scan(&bounds).Error; err != nil {
			return order.Page{}, err
		}
		if len(bounds) > 0 {
			q.and(q.id+" >= ?", bounds[0])
		}
		s.filter(&q, f)
	}
	var rows []orderRow
	read := "SELECT o.*, " + s.engine.Now + " AS read_at FROM " + q.first + q.second + q.where() + " ORDER BY " + q.id + " DESC LIMIT ?"
	if err := db.Raw(read, append(q.args, f.Limit+1)...).Scan(&rows).Error; err != nil {
		return order.Page{}, err
	}
	var p order.Page
	switch {
	case len(rows) > f.Limit:
		rows = rows[:f.Limit]
		p.Next = rows[f.Limit-1].ID
	case len(bounds) == 2:
		p.Next = bounds[0]
	}
	if err := s.decided(ctx, rows); err != nil {
		return order.Page{}, err
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	lines, err := s.linesOf(db, ids...)
	for _, r := range rows {
		if o := r.order(lines[r.ID]); f.Status == "" || o.Status == f.Status {
			p.Orders = append(p.Orders, o)
		}
	}
	return p, err
}

// listing is a query for orders.
type listing struct {
	id     string // the column by which they are sorted
	first  string // the table in which it is read
	second string // the join with the other one
	conds  []string
	args   []any
}

func (q *listing) and(cond string, args ...any) {
	q.conds, q.args = append(q.conds, cond), append(q.args, args...)
}

func (q *listing) where() string {
	if len(q.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(q.conds, " AND ")
}

// listing returns the query for the orders of a customer, of a SKU, or all, each by the index
// that has them in their order.
func (s *Store) listing(f order.Filter) listing {
	q := listing{id: "o.id", first: "orders o" + s.engine.ByKey}
	switch {
	case f.Owner != "":
		q.first = "orders o" + s.engine.Index("orders_customer")
		q.and("o.customer_id = ?", f.Owner)
	case f.SKU != "":
		q.id, q.first = "l.order_id", "order_lines l"+s.engine.Index("order_lines_sku")
		q.second = " " + s.engine.FirstJoin + " orders o ON o.id = l.order_id"
		q.and("l.sku = ?", f.SKU)
	}
	if f.Before != "" {
		q.and(q.id+" < ?", f.Before)
	}
	return q
}

// filter narrows q to the status that orders read as, and to a SKU if that is not done yet.
func (s *Store) filter(q *listing, f order.Filter) {
	if f.SKU != "" && q.second == "" {
		q.and("EXISTS (SELECT 1 FROM order_lines l WHERE l.order_id = o.id AND l.sku = ?)", f.SKU)
	}
	now := s.engine.Now
	switch f.Status {
	case "":
	case order.Pending, order.Queued:
		q.and("o.status = ? AND o.expires_at > "+now, string(f.Status))
	case order.Expired:
		q.and("(o.status = ? OR o.status = ? AND o.expires_at <= "+now+")", string(f.Status), string(order.Pending))
	case order.Rejected:
		q.and("(o.status = ? OR o.status = ? AND o.expires_at <= "+now+")", string(f.Status), string(order.Queued))
	default:
		q.and("o.status = ?", string(f.Status))
	}
}

// linesOf returns the lines of the orders with these ids, each order's by SKU.
func (s *Store) linesOf(db *gorm.DB, ids ...string) (map[string][]lineRow, error) {
	lines := make(map[string][]lineRow, len(ids))
	if len(ids) == 0 {
		return lines, nil
	}
	var all []lineRow
	err := db.Raw("SELECT * FROM order_lines"+s.engine.ByKey+" WHERE order_id IN ? ORDER BY order_id, sku", ids).Scan(&all).Error
	for _, l := range all {
		lines[l.OrderID] = append(lines[l.OrderID], l)
	}
	return lines, err
}

// Events implements [order.Store].
func (s *Store) Events(ctx context.Context, id, owner string) ([]order.Event, error) {
	if _, err := s.Order(ctx, id, owner); err != nil {
		return nil, err
	}
	var rows []struct {
		Movement, SKU, Instance    string
		Quantity, Fence, CreatedAt int64
	}
	if err := s.db.WithContext(ctx).Raw("SELECT * FROM ledger WHERE order_id = ? ORDER BY id", id).Scan(&rows).Error; err != nil {
		return nil, s.translate(ctx, err)
	}
	events := make([]order.Event, len(rows))
	for i, r := range rows {
		events[i] = order.Event{
			Movement: stock.Movement(r.Movement), SKU: r.SKU, Quantity: r.Quantity, Fence: uint64(max(0, r.Fence)),
			Instance: r.Instance, At: time.UnixMicro(r.CreatedAt).UTC(),
		}
	}
	return events, nil
}
