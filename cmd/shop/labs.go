package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/show/lab"
)

// listLabsCommand lists the labs.
func listLabsCommand() cli.Command {
	return cli.Command{
		Name: "list", Summary: "List the labs, which are experiments that each answer one question",
		Examples: []cli.Example{{Purpose: "All labs", Line: "shop lab list"}, {Purpose: "With causes, cures and exercises, for a program", Line: "shop lab list --json"}},
		Define: func(f *cli.Flags) cli.Run {
			var asJSON bool
			f.BoolVar(&asJSON, "json", false, "print the labs as JSON")
			return func(context.Context, []string) error {
				if asJSON {
					return json.NewEncoder(f.Stdout).Encode(lab.All())
				}
				table := tabwriter.NewWriter(f.Stdout, 0, 8, 2, ' ', 0)
				for _, l := range lab.All() {
					needs := ""
					if len(l.Needs) > 0 {
						needs = " (needs " + strings.Join(l.Needs, ", ") + ")"
					}
					fmt.Fprintf(table, "%d\t%s\t%s%s\n", l.Number, l.Name, l.Question, needs)
				}
				return table.Flush()
			}
		},
	}
}

// allLabs is the name of all labs together.
const allLabs = "all"

// runLabCommand runs one of these labs, or all of them.
func runLabCommand(labs []lab.Lab) cli.Command {
	names := []string{allLabs}
	for _, l := range labs {
		names = append(names, l.Name)
	}
	return cli.Command{
		Name: "run", Summary: "Run a lab on real processes and servers, and print its verdict",
		Details: "The name all runs every lab, and prints a table of seconds and verdicts last. Each takes less than 30 s, and ends all that it has started. On a busy machine a lab places fewer orders, as with --small, and may take longer.",
		Args:    "NAME", Values: names,
		Examples: []cli.Example{
			{Purpose: "The lost update, step by step", Line: "shop lab run lost-update"},
			{Purpose: "All labs with few orders each", Line: "shop lab run all --small"},
			{Purpose: "For a program", Line: "shop lab run mutex --json"},
		},
		Exits: []cli.Exit{
			{Code: 0, Meaning: "the effect was shown, and the cure worked"},
			{Code: 1, Meaning: "the effect was not shown, or the cure did not work"},
			{Code: 3, Meaning: "the run was inconclusive, for example because a server is not installed"},
		},
		Define: func(f *cli.Flags) cli.Run {
			r := &labRuns{stdout: f.Stdout, labs: labs}
			f.BoolVar(&r.json, "json", false, "print nothing but the results, as JSON, one per line")
			f.BoolVar(&r.config.Small, "small", false, "place fewer orders, for a quick look")
			f.StringVar(&r.out, "out", "", "`FOLDER`: write the page of each lab that was shown to this folder, with its picture")
			return func(ctx context.Context, args []string) error { return r.run(ctx, args[0]) }
		},
	}
}

// labRuns are runs of labs with the flags of the command.
type labRuns struct {
	stdout io.Writer
	labs   []lab.Lab
	config lab.Config
	out    string // folder for the pages; empty: none
	json   bool

	results []lab.Result
}

// run runs the lab of a name, or all of them. The command has checked the name.
func (r *labRuns) run(ctx context.Context, name string) (err error) {
	if r.out != "" {
		if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // What is written there is for everybody to read.
			return cli.UsageError{Err: fmt.Errorf("--out: %w", err)}
		}
	}
	if r.config.Executable, err = os.Executable(); err != nil {
		return err
	}
	if !r.json {
		r.config.Seen = func(e lab.Event) { fmt.Fprintln(r.stdout, e) }
	}
	code := 0
	for _, l := range r.labs {
		if name != allLabs && name != l.Name {
			continue
		}
		verdict, err := r.one(ctx, l)
		if err != nil {
			return err
		}
		if c := verdict.ExitCode(); c == 1 || code == 0 {
			code = c
		}
	}
	if name == allLabs && !r.json {
		if err := r.table(); err != nil {
			return err
		}
	}
	if r.out != "" && name == allLabs {
		if err := lab.WriteIndex(r.out); err != nil {
			return err
		}
	}
	if code != 0 {
		return cli.ExitError(code)
	}
	return nil
}

// one runs one lab, prints its result, and writes its page.
func (r *labRuns) one(ctx context.Context, l lab.Lab) (lab.Verdict, error) {
	if !r.json {
		l.Intro(r.stdout)
	}
	result := l.Do(ctx, r.config)
	r.results = append(r.results, result)
	if r.json {
		if err := json.NewEncoder(r.stdout).Encode(result); err != nil {
			return "", err
		}
	} else {
		l.Report(r.stdout, result)
		fmt.Fprintln(r.stdout)
	}
	if r.out == "" || result.Verdict != lab.Shown { // a page shows what a lab shows
		return result.Verdict, nil
	}
	return result.Verdict, l.Write(r.out, result)
}

// table prints how long each lab took, and its verdict.
func (r *labRuns) table() error {
	table := tabwriter.NewWriter(r.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "lab\tseconds\tverdict")
	for _, result := range r.results {
		fmt.Fprintf(table, "%s\t%.1f\t%s\n", result.Name, result.Took/1000, result.Verdict)
	}
	return table.Flush()
}

// newLabCommand writes the files of a new lab.
func newLabCommand() cli.Command {
	return cli.Command{
		Name: "new", Args: "NAME", Summary: "Write a lab of your own, which runs, for you to change",
		Details: "The command works at the root of the repository. It writes a script and texts from a template, adds the lab to the list, and overwrites nothing.",
		Examples: []cli.Example{
			{Purpose: "A script in internal/show/lab/slow_disk_lab.go", Line: "shop lab new slow-disk"}, {Purpose: "Another one, in lost_reply_lab.go", Line: "shop lab new lost-reply"},
		},
		Define: func(f *cli.Flags) cli.Run {
			return func(_ context.Context, args []string) error {
				written, err := lab.Scaffold(".", args[0])
				if errors.Is(err, lab.ErrName) {
					return cli.UsageError{Err: err}
				}
				for _, path := range written {
					fmt.Fprintln(f.Stdout, path)
				}
				if err == nil {
					fmt.Fprintf(f.Stdout, "Run it with: go run ./cmd/shop lab run %s\nHow to change it: docs/how-to/write-a-lab.md\n", args[0])
				}
				return err
			}
		},
	}
}

// workerCommand is a worker of a lab, in a process that the lab starts. The help does not show it, as people do not start workers.
func workerCommand() cli.Command {
	return cli.Command{
		Name: "worker", Args: "LAB", Summary: "Do the work of a process of a lab", Hidden: true,
		Define: func(f *cli.Flags) cli.Run {
			return func(ctx context.Context, args []string) error {
				w, err := lab.NewWorker(f.Stdin, f.Stdout)
				if err != nil {
					return err
				}
				return lab.Serve(ctx, args[0], w)
			}
		},
	}
}
