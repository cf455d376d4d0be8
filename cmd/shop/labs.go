package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/lab"
)

// listLabs prints the labs.
func listLabs(_ context.Context, f *cli.Flags, args []string) error {
	var asJSON bool
	f = cli.NewFlags(f.Process, "lab list", "list the labs: experiments that each answer one question")
	f.BoolVar(&asJSON, "json", false, "print the labs as JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(f.Stdout).Encode(lab.All())
	}
	table := tabwriter.NewWriter(f.Stdout, 0, 8, 2, ' ', 0)
	for _, l := range lab.All() {
		fmt.Fprintf(table, "%d\t%s\t%s\n", l.Number, l.Name, l.Question)
	}
	return table.Flush()
}

// runLabs runs one lab, or all of them.
func runLabs(ctx context.Context, f *cli.Flags, args []string) (err error) {
	c := lab.Config{}
	var asJSON bool
	var out string
	f = cli.NewFlags(f.Process, "lab run NAME", "run a lab, or with the name all every one of them; exit 0 if the effect was shown and the cure worked, 1 if not, 3 if the run was inconclusive")
	f.BoolVar(&asJSON, "json", false, "print nothing but the results, as JSON, one a line")
	f.BoolVar(&c.Small, "small", false, "use fewer orders, for a quick look")
	f.StringVar(&out, "out", "", "`FOLDER` to write the pages of the labs to, with pictures")
	names, err := f.ParseWith(args, 1, 1)
	if err != nil {
		return err
	}
	labs := lab.All()
	if names[0] != "all" {
		one, err := lab.Find(names[0])
		if err != nil {
			return cli.UsageError{Err: fmt.Errorf("lab run: %w", err)}
		}
		labs = []lab.Lab{one}
	}
	if out != "" {
		if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // What is written there is for everybody to read.
			return cli.UsageError{Err: fmt.Errorf("lab run: --out: %w", err)}
		}
	}
	if c.Executable, err = os.Executable(); err != nil {
		return err
	}
	if !asJSON {
		c.Seen = func(e lab.Event) { fmt.Fprintln(f.Stdout, e) }
	}
	code := 0
	for _, l := range labs {
		if !asJSON {
			l.Intro(f.Stdout)
		}
		r := l.Do(ctx, c)
		if asJSON {
			if err := json.NewEncoder(f.Stdout).Encode(r); err != nil {
				return err
			}
		} else {
			l.Report(f.Stdout, r)
			fmt.Fprintln(f.Stdout)
		}
		if out != "" && r.Verdict == lab.Shown { // a page shows what a lab shows
			if err := l.Write(out, r); err != nil {
				return err
			}
		}
		if c := r.Verdict.ExitCode(); c == 1 || code == 0 {
			code = c
		}
	}
	if out != "" && len(labs) > 1 {
		if err := lab.WriteIndex(out); err != nil {
			return err
		}
	}
	if code != 0 {
		return cli.ExitError(code)
	}
	return nil
}

// serveLab is a worker of a lab, which its lab starts. People do not, so no list has it.
func serveLab(ctx context.Context, f *cli.Flags, args []string) error {
	f = cli.NewFlags(f.Process, "lab worker NAME", "do one part of a lab; labs start it")
	names, err := f.ParseWith(args, 1, 1)
	if err != nil {
		return err
	}
	w, err := lab.NewWorker(f.Stdin, f.Stdout)
	if err != nil {
		return err
	}
	return lab.Serve(ctx, names[0], w)
}
