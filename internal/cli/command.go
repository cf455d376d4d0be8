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

// Command is a node of the command tree. The program, its help, the shell completion and the reference pages
// read the same tree.
type Command struct {
	Name     string
	Summary  string // what the command does, without a full stop
	Details  string // further sentences for its own help; may be empty
	Args     string // alongside the flags, such as "KIND [ID...]"
	Values   []string
	Secret   bool // an argument may be a secret, so no message repeats one
	Examples []Example
	Exits    []Exit     // exit codes that mean more than they do for every command
	Env      []Variable // environment variables without a flag

	// Define defines the flags, and returns the function that does the work with the parsed flags. It is nil if
	// the command only has subcommands. It has no other effect, as the help defines the flags too.
	Define func(f *Flags) Run

	Commands []Command // subcommands
}

// Run does the work of a command until ctx ends. It gets the arguments alongside the flags.
type Run func(ctx context.Context, args []string) error

// Example is a command line that a user can paste.
type Example struct{ Purpose, Line string }

// Exit is the meaning of an exit code.
type Exit struct {
	Code    int
	Meaning string
}

// Variable is an environment variable without a flag.
type Variable struct{ Name, Meaning string }

// Run runs the command that args name below the root c.
func (c *Command) Run(ctx context.Context, p Process, args []string) error {
	return run(ctx, p, path{c}, args)
}

// path is a way from the root to a command.
type path []*Command

// last returns the command at the end of the path.
func (p path) last() *Command { return p[len(p)-1] }

// name returns the words that a user types, such as "shop timers list".
func (p path) name() string {
	names := make([]string, len(p))
	for i, c := range p {
		names[i] = c.Name
	}
	return strings.Join(names, " ")
}

// below returns the path to a command below the last one.
func (p path) below(i int) path { return append(slices.Clip(p), &p.last().Commands[i]) }

// child returns the path to the subcommand of a name.
func (p path) child(name string) (path, error) {
	if i := slices.IndexFunc(p.last().Commands, func(c Command) bool { return c.Name == name }); i >= 0 {
		return p.below(i), nil
	}
	names := p.last().names()
	switch near := nearest(name, names); {
	case near != "":
		return nil, p.misused("unknown command %.40q: did you mean %s?", name, near)
	case len(names) == 0:
		return nil, p.misused("no command %.40q: %s has no subcommands", name, p.name())
	case len(p) == 1:
		return nil, p.misused("unknown command %.40q: run %s help for the list", name, p.name())
	}
	return nil, p.misused("unknown command %.40q: want %s", name, strings.Join(names, ", "))
}

// misused returns a usage error of the command at the end of the path.
func (p path) misused(format string, args ...any) error {
	return UsageError{errors.New(p.prefix() + fmt.Sprintf(format, args...))}
}

// prefix returns the command in front of an error, without the program.
func (p path) prefix() string {
	if len(p) == 1 {
		return ""
	}
	return p[1:].name() + ": "
}

// names returns the names of the subcommands.
func (c *Command) names() []string {
	names := make([]string, len(c.Commands))
	for i, each := range c.Commands {
		names[i] = each.Name
	}
	return names
}

// isHelp reports whether an argument asks for help.
func isHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

func run(ctx context.Context, p Process, at path, args []string) error {
	c := at.last()
	if len(c.Commands) > 0 && len(args) > 0 {
		switch {
		case args[0] == "help" && !slices.Contains(c.names(), "help"): // of a group; that of the root is a command
			return help(p.Stdout, at, args[1:])
		case !strings.HasPrefix(args[0], "-"):
			child, err := at.child(args[0])
			if err != nil {
				return err
			}
			return run(ctx, p, child, args[1:])
		case c.Define == nil && isHelp(args[0]):
			return help(p.Stdout, at, nil)
		case c.Define == nil:
			return at.misused("flag %.40s before the command: write %s COMMAND [flags]", args[0], at.name())
		}
	}
	if c.Define == nil && len(at) == 1 {
		return help(p.Stdout, at, nil)
	}
	if c.Define == nil {
		return at.misused("missing command: want %s", strings.Join(c.names(), ", "))
	}
	f := newFlags(p, at)
	work := c.Define(f)
	rest, err := f.parse(args)
	switch {
	case errors.Is(err, errHelp):
		return help(p.Stdout, at, nil)
	case err == nil:
		err = work(ctx, rest)
	}
	if bad, ok := errors.AsType[UsageError](err); ok && !strings.HasPrefix(bad.Error(), at.prefix()) {
		return at.misused("%s", strings.ReplaceAll(bad.Error(), "\n", "; "))
	}
	return err
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

// errHelp says that the arguments ask for help.
var errHelp = errors.New("help")

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
