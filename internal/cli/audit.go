package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// auditCommand compares columns, ledger and orders of every SKU. It fails if an invariant does not hold or an order is overdue.
func auditCommand() Command {
	return Command{
		Name: "audit", Summary: "Audit the ledger",
		Details: "The command compares stock columns, ledger and orders of every SKU. It reads the database itself, in one snapshot, so it also works during a sale and without any instance.",
		Examples: []Example{
			{"The default SQLite file in this folder", "shop audit"},
			{"A MariaDB server", "shop audit --database mysql://USER:PASSWORD@127.0.0.1:3306/shop"},
		},
		Exits: []Exit{
			{0, "every invariant holds"},
			{1, "an invariant is violated, an order is overdue, or the database cannot be read"},
		},
		Define: func(f *Flags) Run {
			var database string
			f.DatabaseVar(&database)
			return func(ctx context.Context, _ []string) error { return audit(ctx, f, database) }
		},
	}
}

func audit(ctx context.Context, f *Flags, database string) error {
	return withDatabase(ctx, "audit", database, sqlstore.AccessRead, func(ctx context.Context, store *sqlstore.Store) error {
		err := store.RequireLatestSchema(ctx)
		if errors.Is(err, sqlstore.ErrNoSchema) { // the units of a SKU may be where this program does not count them
			return fmt.Errorf("audit: the schema of %s is older than this program: run shop migrate", store.Address())
		}
		var audits []stock.Audit
		if err == nil {
			audits, err = store.Audit(ctx, "")
		}
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		return printAudit(f.Stdout, audits)
	})
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
