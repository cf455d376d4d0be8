package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// Audit compares columns, ledger and orders of every SKU. It fails if an invariant does not hold or an order is overdue.
func Audit(ctx context.Context, f *Flags, args []string) (err error) {
	var database string
	f.Database(&database)
	if err := f.Parse(args); err != nil {
		return err
	}
	store, err := openDatabase(ctx, "audit", database, sqlstore.AccessRead)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	audits, err := store.Audit(ctx, "")
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return printAudit(f.Stdout, audits)
}

func printAudit(w io.Writer, audits []stock.Audit) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SKU\tSTRATEGY\tSTOCKED\tACCEPTED\tSOLD\tON HAND\tRESERVED\tVERDICT")
	broken := 0
	for _, a := range audits {
		verdict := "ok"
		if !a.OK() {
			verdict = "BROKEN"
			broken++
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", a.SKU, a.Strategy, a.Stocked, a.Accepted(), a.Sold, a.OnHand, a.Reserved, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, a := range audits {
		for _, b := range a.Broken() {
			fmt.Fprintf(w, "%s: %s\n", a.SKU, b)
		}
	}
	if broken > 0 {
		return fmt.Errorf("audit: invariants of %d of %d SKUs are violated", broken, len(audits))
	}
	return nil
}

// closing adds what cl returns to the error that a function returns.
func closing(err *error, cl func() error) { *err = errors.Join(*err, cl()) }
