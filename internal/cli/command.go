package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command describes a command, with what help and reference pages say of it beyond a [cobra.Command].
type Command struct {
	Name     string
	Summary  string   // what the command does, without a full stop
	Details  string   // further sentences for its own help; may be empty
	Args     string   // alongside the flags, such as "KIND [ID...]"
	Values   []string // of the first argument; empty: any
	Hidden   bool     // people do not run it
	Examples []Example
	Exits    []Exit     // exit codes that mean more than they do for every command
	Env      []Variable // environment variables without a flag

	// Define defines the flags, and returns the function that does the work with the parsed flags. It is nil if
	// the command only has subcommands.
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

// The annotations of a command have a line for each entry: code or name, two spaces, and the meaning.
const (
	ExitCodes   = "exit codes"
	Environment = "environment"
)

// build returns the command of cobra below a path such as "timers".
func (d Command) build(p Process, path string) *cobra.Command {
	var examples, exits, env []string
	for _, e := range d.Examples {
		examples = append(examples, "  # "+e.Purpose+"\n  "+e.Line)
	}
	for _, e := range d.Exits {
		exits = append(exits, fmt.Sprintf("%d  %s", e.Code, e.Meaning))
	}
	for _, v := range d.Env {
		env = append(env, v.Name+"  "+v.Meaning)
	}
	c := &cobra.Command{
		Use: strings.TrimSpace(d.Name + " " + d.Args), Short: d.Summary, Long: d.Details, Example: strings.Join(examples, "\n\n"), Args: d.check, ValidArgs: d.Values, Hidden: d.Hidden,
		Annotations: map[string]string{ExitCodes: strings.Join(exits, "\n"), Environment: strings.Join(env, "\n")},
	}
	if d.Define != nil {
		f := &Flags{Process: p, FlagSet: c.Flags(), path: path}
		work := d.Define(f)
		f.Group("")
		c.RunE = func(c *cobra.Command, args []string) error { return work(c.Context(), args) }
	}
	for _, each := range d.Commands {
		c.AddCommand(each.build(p, strings.TrimSpace(path+" "+each.Name)))
	}
	return c
}

// check checks the arguments against those of the usage line. The messages on their number repeat none, as one may be a secret.
func (d Command) check(c *cobra.Command, args []string) error {
	names := strings.Fields(d.Args)
	least := len(names) - strings.Count(d.Args, "[")
	number := cobra.RangeArgs(least, len(names))
	switch {
	case strings.HasSuffix(d.Args, "...]"):
		number = cobra.MinimumNArgs(least)
	case least == len(names):
		number = cobra.ExactArgs(least)
	}
	if err := number(c, args); err != nil || d.Values == nil {
		return err
	}
	if err := OneOf(args[0], d.Values); err != nil {
		return UsageError{fmt.Errorf("%s %.40q: %w", names[0], args[0], err)}
	}
	return nil
}

// Flags are the flags of a command, with the process of the command.
type Flags struct {
	Process
	*pflag.FlagSet

	path, heading string
	every         bool // flags have a variable, and not only those of connections
}

// Command returns the words that a user types for the command, without the program.
func (f *Flags) Command() string { return f.path }

// Group begins a group of flags: the help lists those that follow under this heading.
func (f *Flags) Group(heading string) {
	f.VisitAll(func(each *pflag.Flag) {
		if each.Annotations[headingNote] == nil {
			f.annotate(each.Name, headingNote, f.heading)
			if f.every {
				f.annotate(each.Name, variableNote, variable(each.Name))
			}
		}
	})
	f.heading = heading
}

// EveryVariable gives each flag of the command a variable.
func (f *Flags) EveryVariable() { f.every = true }

// Given reports whether the user has set a flag.
func (f *Flags) Given(name string) bool { return f.Changed(name) }

// DefaultText replaces the default of a flag in the help, for one that the command computes.
func (f *Flags) DefaultText(name, text string) { f.Lookup(name).DefValue = text }

// WithoutVariable takes the variable from a flag.
func (f *Flags) WithoutVariable(name string) { f.annotate(name, variableNote) }

// annotate sets an annotation of a flag that is defined.
func (f *Flags) annotate(name, key string, values ...string) {
	f.Lookup(name).Annotations = with(f.Lookup(name).Annotations, key, values)
}

// with returns m with an entry more.
func with(m map[string][]string, key string, values []string) map[string][]string {
	if m == nil {
		m = map[string][]string{}
	}
	m[key] = values
	return m
}
