package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Process is what a command sees of the process that it runs in.
type Process struct {
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// groupUsage follows the name of a command that only has subcommands.
const groupUsage = " COMMAND [flags]"

// keepOrder lets the help show commands in the order in which they are added.
var keepOrder = sync.OnceFunc(func() { cobra.EnableCommandSorting = false })

// Program returns the program whose commands are those of the tree d.
func Program(p Process, d Command) *cobra.Command {
	keepOrder()
	root := d.build(p, "")
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(explain)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { help(c) })
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return readVariables(c, p.Getenv) }
	if root.RunE == nil {
		root.Use += groupUsage
		root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	if c, _, err := root.Find([]string{"help"}); err == nil {
		c.RunE = helpOn
	}
	finish(root)
	return root
}

// finish completes c and the commands below it.
func finish(c *cobra.Command) {
	c.SuggestionsMinimumDistance = 2
	c.Flags().SortFlags = false
	c.DisableFlagsInUseLine = !c.HasAvailableLocalFlags()
	finishFlags(c)
	if !c.HasSubCommands() {
		c.Args = explainArgs(c.Args)
		return
	}
	c.Args = noSubcommand
	if c.RunE == nil {
		c.Use += groupUsage
		c.RunE = func(c *cobra.Command, _ []string) error {
			return UsageError{errors.New("missing command: want " + strings.Join(subcommands(c), ", "))}
		}
	}
	for _, each := range c.Commands() {
		finish(each)
	}
	if c.Example == "" {
		c.Example = examplesBelow(c)
	}
}

// explainArgs turns what is wrong with the arguments into a usage error, which shows what is wanted.
func explainArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		err := check(c, args)
		if _, ok := errors.AsType[UsageError](err); err == nil || ok {
			return err
		}
		return UsageError{fmt.Errorf("%w: want %s", err, c.UseLine())}
	}
}

// noSubcommand refuses the name of a subcommand that c does not have. Cobra takes it for an argument.
func noSubcommand(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case args[0] == "help": // cobra has it for the root only
		return pflag.ErrHelp
	}
	near := c.SuggestionsFor(args[0])
	switch {
	case len(near) > 0:
		return UsageError{fmt.Errorf("unknown command %.40q: did you mean %s?", args[0], Alternatives(near))}
	case !c.HasParent():
		return UsageError{fmt.Errorf("unknown command %.40q: run %s help for the list", args[0], c.Name())}
	}
	return UsageError{fmt.Errorf("unknown command %.40q: want %s", args[0], strings.Join(subcommands(c), ", "))}
}

// subcommands returns the names of the commands below c.
func subcommands(c *cobra.Command) []string {
	var names []string
	for _, each := range c.Commands() {
		if each.IsAvailableCommand() {
			names = append(names, each.Name())
		}
	}
	return names
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

// Execute runs the command that args name below root, prints its error in one line, and returns the code to exit with.
func Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for those of the process
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[ExitError](err); ok {
		return int(e)
	}
	text, code := strings.ReplaceAll(err.Error(), "\n", "; "), 1
	if _, ok := errors.AsType[UsageError](err); ok {
		code = 2
		if c != root {
			text = name(c) + ": " + text
		}
	}
	fmt.Fprintf(root.ErrOrStderr(), "%s: %s\n", root.Name(), text)
	return code
}

// name returns the words that a user types for a command, without the program.
func name(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") }
