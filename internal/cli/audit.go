package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// auditCommand compares columns, ledger and orders of every SKU. It fails if an invariant does not hold or an order is overdue.
func auditCommand() Command {
	return Command{
		Name: "audit", Summary: "Audit the ledger",
		Details: "The command compares stock columns, ledger and orders of every SKU. It reads the database itself, so it also works during a sale and without any instance. It remembers up to which entry the ledger of each SKU was right, and the next audit checks what was written since.",
		Examples: []Example{
			{"The default SQLite file in this folder", "shop audit"},
			{"A MariaDB server", "shop audit --database mysql://USER:PASSWORD@127.0.0.1:3306/shop"},
			{"Everything, also what was right before", "shop audit --full"},
			{"As JSON, as GET /api/v1/audit returns it", "shop audit --json"},
		},
		Exits: []Exit{
			{0, "every invariant holds"},
			{1, "an invariant is violated, an order is overdue, or the database cannot be read"},
		},
		Define: func(f *Flags) Run {
			var database string
			var asJSON, full bool
			f.DatabaseVar(&database)
			f.BoolVar(&asJSON, "json", false, "print JSON")
			f.BoolVar(&full, "full", false, "check everything, and not only what was written since the last audit that found every invariant")
			return func(ctx context.Context, _ []string) error { return audit(ctx, f, database, asJSON, full) }
		},
	}
}

func audit(ctx context.Context, f *Flags, database string, asJSON, full bool) error {
	return withDatabase(ctx, "audit", database, sqlstore.AccessRead, func(ctx context.Context, store *sqlstore.Store) error {
		var audits []stock.Audit
		check := store.AuditRecent
		if full {
			check = store.Audit
		}
		err := store.RequireLatestSchema(ctx)
		if err == nil { // otherwise, the units of a SKU may be where this program does not count them
			audits, err = check(ctx, "")
		}
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		if err := printAudit(f.Stdout, audits, asJSON); err != nil {
			return err
		}
		return verdict(audits)
	})
}

func printAudit(w io.Writer, audits []stock.Audit, asJSON bool) error {
	if asJSON {
		return printIndented(w, httpapi.AuditOf(audits))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SKU\tSTRATEGY\tSTOCKED\tACCEPTED\tSOLD\tON HAND\tRESERVED\tVERDICT")
	for _, a := range audits {
		verdict := "ok"
		if !a.OK() {
			verdict = "BROKEN"
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
	for _, a := range audits {
		if a.RightTo > 0 {
			fmt.Fprintf(w, "%s: right up to entry %d at %s, %d entries checked since\n", a.SKU, a.RightTo, a.RightAt.Format(time.RFC3339), a.Checked)
		}
	}
	return nil
}

// verdict returns an error if an invariant does not hold, or an order is overdue.
func verdict(audits []stock.Audit) error {
	broken := 0
	for _, a := range audits {
		if !a.OK() {
			broken++
		}
	}
	if broken == 0 {
		return nil
	}
	return fmt.Errorf("audit: invariants of %d of %d SKUs are violated", broken, len(audits))
}

// closing adds what cl returns to the error that a function returns.
func closing(err *error, cl func() error) { *err = errors.Join(*err, cl()) }
