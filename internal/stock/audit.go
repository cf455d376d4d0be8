package stock

import (
	"fmt"
	"time"
)

// OverdueGrace is how late an order may expire before an audit reports it. Failures that the timers recover from without help cost seconds.
const OverdueGrace = time.Minute

// Audit compares what the columns of one SKU say with what its ledger and its orders say, all read in one snapshot.
type Audit struct {
	SKU      string
	Strategy string

	OnHand   int64 // column
	Reserved int64 // column

	Stocked        int64 // ledger: units ever put on the shelf
	LedgerOnHand   int64 // ledger: what on_hand should be
	LedgerReserved int64 // ledger: what reserved should be

	Open     int64 // orders: units that pending orders hold
	Sold     int64 // orders: units that were paid for
	TwoFates int64 // ledger: orders that were paid or released more than once, or both
	Overdue  int64 // orders: those that are pending more than OverdueGrace after their expiry

	FenceStepsBack int64     // ledger: reservations under an older fence than the one before
	RightTo        int64     // ledger: everything up to this entry was right in an earlier audit, and is not checked again; 0: no entry
	RightAt        time.Time // when that was
	Checked        int64     // ledger: entries that this audit has checked

	Miscounted int64 // orders: customers whose counter for the purchase limit differs from their orders
}

// Accepted returns the units that customers were promised and still expect.
func (a Audit) Accepted() int64 { return a.Open + a.Sold }

// Oversold returns the units that were promised beyond those that ever existed.
func (a Audit) Oversold() int64 { return max(0, a.Accepted()-a.Stocked) }

// Undersold returns the units that no order has and no customer can buy, because the columns do not count them.
func (a Audit) Undersold() int64 {
	return max(0, a.Stocked-a.Accepted()-max(0, a.OnHand-a.Reserved))
}

// LostUpdates returns by how many units the columns differ from the ledger: each was written there, and overwritten in the column.
// Opposite losses cancel, so it is the least number of them.
func (a Audit) LostUpdates() int64 {
	return abs(a.OnHand-a.LedgerOnHand) + abs(a.Reserved-a.LedgerReserved)
}

// LedgerOK reports whether columns, ledger and orders agree with one another.
func (a Audit) LedgerOK() bool {
	return a.LostUpdates() == 0 && a.LedgerReserved == a.Open && a.Stocked-a.LedgerOnHand == a.Sold &&
		a.TwoFates == 0 && a.FenceStepsBack == 0
}

// OK reports whether every invariant holds and no order is overdue.
func (a Audit) OK() bool { return len(a.Broken()) == 0 }

// Broken names each invariant that does not hold, and overdue orders, with the figures.
func (a Audit) Broken() []string {
	var broken []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	check(a.Oversold() == 0, "oversold: %d units promised, %d ever stocked", a.Accepted(), a.Stocked)
	check(a.Undersold() == 0, "undersold: %d units are neither promised nor for sale", a.Undersold())
	check(a.OnHand == a.LedgerOnHand, "on_hand differs from the ledger: column %d, ledger %d", a.OnHand, a.LedgerOnHand)
	check(a.Reserved == a.LedgerReserved, "reserved differs from the ledger: column %d, ledger %d", a.Reserved, a.LedgerReserved)
	check(a.LedgerReserved == a.Open, "ledger differs from the open orders: ledger %d, orders %d", a.LedgerReserved, a.Open)
	check(a.Stocked-a.LedgerOnHand == a.Sold, "ledger differs from the paid orders: ledger %d, orders %d", a.Stocked-a.LedgerOnHand, a.Sold)
	check(a.TwoFates == 0, "settled twice: %d orders were paid or released more than once", a.TwoFates)
	check(a.FenceStepsBack == 0, "fence went back: %d reservations under an older fence", a.FenceStepsBack)
	check(a.Miscounted == 0, "purchase limit: the counters of %d customers differ from their orders", a.Miscounted)
	check(a.Overdue == 0, "overdue: %d orders hold units more than %v after their expiry", a.Overdue, OverdueGrace)
	return broken
}

func abs(n int64) int64 { return max(n, -n) }
