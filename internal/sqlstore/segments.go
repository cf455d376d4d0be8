package sqlstore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// segments is how many rows a segmented SKU has in addition to its own.
const segments = 15

// apart is how long no shared transaction has a SKU again that has several rows, after one of them was locked twice
// within that time. Its other rows sell meanwhile, so its version does not show whether the row is still locked.
const apart = 10 * time.Second

// kind is what is said of a SKU when it is created, and never changes.
type kind struct {
	limit    int64 // per customer; 0: none
	segments int   // rows in addition to the SKU's own
}

// segmentRow is a part of a SKU. Its columns are those of skus, and are added to them: the
// row of the SKU is its segment 0.
//
// A segmented SKU has a row in skus and 15 rows in sku_segments. Levels, lists and the audit sum them in one
// statement. Every movement is a relative update of one row, or of several in ascending order, and may go to any row. So
// an instance that ignores segments keeps the sums right. Payments and cancellations go to one row in turn; expiries and restocks
// are spread evenly. The comment of transaction.segmented says how an order takes its units.
type segmentRow struct {
	SKU      string
	Segment  int
	OnHand   int64
	Reserved int64
	Version  int64
}

// splitEvenly divides units into n parts that differ by one at most. The greater ones begin with first.
func splitEvenly(units int64, n, first int) []int64 {
	parts := make([]int64, n)
	for i := range parts {
		parts[(first+i)%n] = units / int64(n)
		if int64(i) < units%int64(n) {
			parts[(first+i)%n]++
		}
	}
	return parts
}

// allSegments is every row of the given SKUs. It is read in one statement, so that a unit that
// goes from one row to another is seen once.
const allSegments = `(SELECT sku, 0 AS segment, on_hand, reserved, version FROM skus WHERE sku IN ?
	UNION ALL SELECT sku, segment, on_hand, reserved, version FROM sku_segments WHERE sku IN ?) parts`

// sumSegments replaces what the rows of segmented SKUs say by what all their segments do.
func sumSegments(db *gorm.DB, rows []skuRow) error {
	var skus []string
	for _, r := range rows {
		if r.Segments > 0 {
			skus = append(skus, r.SKU)
		}
	}
	if len(skus) == 0 {
		return nil
	}
	var sums []segmentRow
	err := db.Raw("SELECT sku, SUM(on_hand) AS on_hand, SUM(reserved) AS reserved, SUM(version) AS version FROM "+
		allSegments+" GROUP BY sku", skus, skus).Scan(&sums).Error
	if err != nil {
		return err
	}
	for _, sum := range sums {
		i := slices.IndexFunc(rows, func(r skuRow) bool { return r.SKU == sum.SKU })
		rows[i].OnHand, rows[i].Reserved, rows[i].Version = sum.OnHand, sum.Reserved, sum.Version
	}
	return nil
}

// kindsOf returns the kinds of those of skus that exist.
func (s *Store) kindsOf(tx *gorm.DB, skus ...string) (map[string]kind, error) {
	found := make(map[string]kind, len(skus))
	var unknown []string
	for _, sku := range skus {
		if k, ok := s.kinds.Load(sku); ok {
			found[sku] = k.(kind) //nolint:errcheck,forcetypeassert // only kinds are stored
		} else {
			unknown = append(unknown, sku)
		}
	}
	for some := range slices.Chunk(unknown, maxRows) {
		var rows []skuRow
		if err := tx.Raw("SELECT * FROM skus WHERE sku IN ?", some).Scan(&rows).Error; err != nil {
			return nil, err
		}
		for _, r := range rows {
			found[r.SKU] = r.kind()
			s.kinds.Store(r.SKU, r.kind())
		}
	}
	return found, nil
}

// applyParts applies m to parts of the segments of sku, which it locks in ascending order.
func applyParts(tx *gorm.DB, d dialect, m stock.Movement, sku string, parts []int64) error {
	if parts[0] != 0 {
		if err := moveRow(tx, m, order.Item{SKU: sku, Quantity: parts[0]}); err != nil {
			return err
		}
	}
	var (
		changed          []int
		onHand, reserved []any
	)
	for i, n := range parts {
		if i == 0 || n == 0 {
			continue
		}
		h, r := m.Delta(n)
		changed, onHand, reserved = append(changed, i), append(onHand, i, h), append(reserved, i, r)
	}
	if len(changed) == 0 {
		return nil
	}
	byPart := "CASE segment" + strings.Repeat(" WHEN ? THEN ?", len(changed)) + " END"
	r := tx.Exec("UPDATE sku_segments"+d.byKey+" SET on_hand = on_hand + "+byPart+", reserved = reserved + "+byPart+
		", version = version + 1 WHERE sku = ? AND segment IN ?", append(append(onHand, reserved...), sku, changed)...)
	if r.Error == nil && r.RowsAffected != int64(len(changed)) {
		return fmt.Errorf("sqlstore: %q has %d of the segments %d", sku, r.RowsAffected, changed)
	}
	return r.Error
}

// move applies m to sku, relative to whatever its row holds, or its segments.
func (s *Store) move(tx *gorm.DB, m stock.Movement, it order.Item) error {
	kinds, err := s.kindsOf(tx, it.SKU)
	if err != nil {
		return err
	}
	rows := kinds[it.SKU].segments + 1
	if rows == 1 {
		return moveRow(tx, m, it)
	}
	first := int(s.turn.Add(1) % uint64(rows))
	parts := splitEvenly(it.Quantity, rows, first)
	if m != stock.Restock { // few units, and alongside the sale: one row
		parts = make([]int64, rows)
		parts[first] = it.Quantity
	}
	return applyParts(tx, s.dialect, m, it.SKU, parts)
}

// isApart reports whether no shared transaction is to have sku now.
func (s *Store) isApart(sku string) bool { return time.Now().Before(s.apartUntil(sku)) }

func (s *Store) apartUntil(sku string) time.Time {
	until, _ := s.apart.Load(sku)
	t, _ := until.(time.Time)
	return t
}

// setApart notes that a row of sku is locked. Once may be chance: somebody has the row for a moment.
func (s *Store) setApart(sku string) {
	until := time.Now()
	if until.Sub(s.apartUntil(sku)) < apart {
		until = until.Add(apart)
	}
	s.apart.Store(sku, until)
}
