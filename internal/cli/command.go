package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Process is what a command sees of the process that it runs in.
type Process struct {
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Command is one command of a [Group].
type Command struct {
	Name string
	Args string // alongside the flags
	What string // description in one line
	More string // that its help adds

	// Run reads its flags and args with f, and does its work until ctx ends.
	Run func(ctx context.Context, f *Flags, args []string) error
}

// Group is commands that share a name.
type Group struct {
	What     string // description in one line
	Commands []Command
	Note     string // the last line of its usage
}

// Run runs the command that args name. f has the name of the group.
func (g Group) Run(ctx context.Context, f *Flags, args []string) error {
	prefix := ""
	if f.Name() != "" {
		prefix = f.Name() + ": "
	}
	if len(args) == 0 {
		g.usage(f.Name(), f.Stderr)
		return UsageError{errors.New(prefix + "which command?")}
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		g.usage(f.Name(), f.Stdout)
		return nil
	}
	for _, c := range g.Commands {
		if c.Name == args[0] {
			name := strings.TrimSpace(strings.Join([]string{f.Name(), c.Name, c.Args}, " "))
			return c.Run(ctx, NewFlags(f.Process, name, c.What+c.More), args[1:])
		}
	}
	var names []string
	for _, c := range g.Commands {
		names = append(names, c.Name)
	}
	return UsageError{fmt.Errorf("%sno command %q: want %s", prefix, args[0], strings.Join(names, ", "))}
}

// usage lists the commands of the group of that name.
func (g Group) usage(name string, w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", g.What)
	lines, longest := make([]string, len(g.Commands)), 0
	for i, c := range g.Commands {
		lines[i] = strings.Join(strings.Fields(strings.Join([]string{"shop", name, c.Name, c.Args}, " ")), " ")
		longest = max(longest, len(lines[i]))
	}
	for i, c := range g.Commands {
		fmt.Fprintf(w, "  %-*s  %s\n", longest, lines[i], c.What)
	}
	fmt.Fprintf(w, "\n%s\n", g.Note)
}

// UsageError says that the command line is wrong.
type UsageError struct{ Err error }

// Error implements [error].
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

// ExitError ends the process with a code and no further words.
type ExitError int

// Error implements [error].
func (e ExitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// errHelp means that help was requested and printed.
const errHelp = ExitError(0)

// ExitCode prints err in one line, unless everything has been said, and returns the code to exit with.
func ExitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[ExitError](err); ok {
		return int(e)
	}
	fmt.Fprintln(stderr, "shop:", strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, ok := errors.AsType[UsageError](err); ok {
		return 2
	}
	return 1
}
