package stock_test

import (
	"strings"
	"testing"

	"example.com/shop/internal/stock"
)

func TestEveryBrokenInvariantHasAName(t *testing.T) {
	exact := stock.Audit{
		OnHand: 7, Reserved: 2, Stocked: 10, LedgerOnHand: 7, LedgerReserved: 2, Open: 2, Sold: 3,
	}
	if !exact.OK() || !exact.LedgerOK() || exact.Oversold() != 0 || exact.Undersold() != 0 || exact.LostUpdates() != 0 {
		t.Fatalf("%+v: %q", exact, exact.Broken())
	}
	for want, breakIt := range map[string]func(*stock.Audit){
		"oversold":                            func(a *stock.Audit) { a.Open, a.LedgerReserved = 12, 12 },
		"undersold":                           func(a *stock.Audit) { a.Reserved = 5 },
		"on_hand differs from the ledger":     func(a *stock.Audit) { a.OnHand = 8 },
		"reserved differs from the ledger":    func(a *stock.Audit) { a.Reserved = 1 },
		"ledger differs from the open orders": func(a *stock.Audit) { a.Open = 1 },
		"ledger differs from the paid orders": func(a *stock.Audit) { a.Sold = 2 },
		"settled twice":                       func(a *stock.Audit) { a.TwoFates = 1 },
		"fence went back":                     func(a *stock.Audit) { a.FenceStepsBack = 1 },
		"overdue":                             func(a *stock.Audit) { a.Overdue = 1 },
	} {
		a := exact
		breakIt(&a)
		if a.OK() || !strings.Contains(strings.Join(a.Broken(), "\n"), want) {
			t.Errorf("%s: %q", want, a.Broken())
		}
	}
}
