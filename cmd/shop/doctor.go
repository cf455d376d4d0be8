package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"example.com/shop/internal/app"
	"example.com/shop/internal/cli"
)

// doctorCommand checks the stores of an instance without starting one.
func doctorCommand() cli.Command {
	return cli.Command{
		Name: "doctor", Summary: "Check whether the stores would take an order, and what to change",
		Details: "The command asks each store that the flags of shop serve name for its version, role, settings, rights, clock and latency. " +
			"If the address of a store lists several hosts, each has a line, and one that is unavailable is a warning. " +
			"It writes in a transaction that it rolls back, and takes a lock that no order uses. It prints no password.",
		Examples: []cli.Example{
			{Purpose: "The stores of an instance, by the variables of that instance", Line: "shop doctor"},
			{Purpose: "A database and a Redis", Line: "shop doctor --database sqlite:shop.db --redis redis://127.0.0.1:6379/0"},
			{Purpose: "As JSON", Line: "shop doctor --json"},
		},
		Exits: []cli.Exit{{Code: 0, Meaning: "no check failed"}, {Code: 1, Meaning: "an order could not be placed: an instance does not start, or refuses a strategy"}},
		Define: func(f *cli.Flags) cli.Run {
			var c app.Config
			var asJSON bool
			instanceStoresVar(f, &c)
			f.Group("Output")
			f.BoolVar(&asJSON, "json", false, "print JSON")
			return func(ctx context.Context, _ []string) error {
				if err := c.ValidateStores(); err != nil {
					return cli.UsageError{Err: err}
				}
				return printChecks(f.Stdout, app.Examine(ctx, c), asJSON)
			}
		},
	}
}

// printChecks prints what was found. It fails if a check has failed.
func printChecks(w io.Writer, checks []app.Check, asJSON bool) error {
	failed := 0
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STORE\tCHECK\tVERDICT\tVALUE -> WHAT TO CHANGE")
	for _, c := range checks {
		if c.Verdict == app.Fail {
			failed++
		}
		value := c.Value
		if c.Change != "" {
			value += " -> " + c.Change
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Store, c.Check, c.Verdict, value)
	}
	write := t.Flush
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		write = func() error { return e.Encode(checks) }
	}
	if err := write(); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("doctor: an order could not be placed: %d of %d checks failed", failed, len(checks))
}
