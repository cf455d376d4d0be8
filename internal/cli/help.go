package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// width is the longest line of a help text, in bytes, where words can be wrapped.
const width = 80

// examplesOfGroup is how many examples the help of a group has at most.
const examplesOfGroup = 4

// helpOn shows the help of the command that args name.
func helpOn(c *cobra.Command, args []string) error {
	about, rest, err := c.Root().Find(args)
	if err != nil {
		return err
	}
	if len(rest) > 0 && !about.HasSubCommands() {
		return UsageError{fmt.Errorf("no command %.40q: %s has no subcommands", rest[0], about.CommandPath())}
	}
	if err := about.ValidateArgs(rest); len(rest) > 0 && err != nil {
		return err
	}
	return about.Help()
}

// help prints the help of a command. In contrast to that of cobra it has groups of flags, variables and exit codes.
func help(c *cobra.Command) {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s.\n\nUsage:\n  %s\n", c.Short, strings.Join(Usage(c), "\n  "))
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s", wrapped("", strings.TrimSpace(c.Long)))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		helpCommands(w, c)
	}
	helpFlags(w, c)
	if c.Annotations[Environment] != "" {
		fmt.Fprint(w, "\nVariables without a flag:\n")
	}
	for line := range strings.SplitSeq(c.Annotations[Environment], "\n") {
		if variable, meaning, ok := strings.Cut(line, "  "); ok {
			fmt.Fprintf(w, "  %s\n%s", variable, wrapped("      ", meaning+"."))
		}
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if codes := c.Annotations[ExitCodes]; codes != "" {
		fmt.Fprintf(w, "\nExit codes:\n  %s\n", strings.ReplaceAll(codes, "\n", "\n  "))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nRun %s COMMAND for the flags and examples of a command.\n", strings.Replace(c.CommandPath(), "shop", "shop help", 1))
	}
}

// Usage returns the forms of a command line.
func Usage(c *cobra.Command) []string {
	forms := []string{c.UseLine()}
	if c.HasAvailableSubCommands() && !strings.Contains(c.Use, "COMMAND") {
		forms = append(forms, c.CommandPath()+" COMMAND [flags]")
	}
	return forms
}

func helpCommands(w io.Writer, c *cobra.Command) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, each := range c.Commands() {
		if each.IsAvailableCommand() {
			head := each.Name()
			if c.HasParent() && !each.HasSubCommands() { // the list of the root is of names only
				head = each.Use
			}
			fmt.Fprintf(table, "  %s\t%s\n", head, each.Short)
		}
	}
	_ = table.Flush() // help has nobody to return an error to
}

// helpFlags prints the flags in groups.
func helpFlags(w io.Writer, c *cobra.Command) {
	group := pflag.NewFlagSet("", pflag.ContinueOnError)
	all := FlagsOf(c)
	for i, f := range all {
		group.SortFlags = false
		group.AddFlag(f.forHelp())
		if i == len(all)-1 || all[i+1].Heading != f.Heading {
			heading := f.Heading
			if heading == "" {
				heading = "Flags"
			}
			fmt.Fprintf(w, "\n%s:\n%s", heading, group.FlagUsagesWrapped(width))
			group = pflag.NewFlagSet("", pflag.ContinueOnError)
		}
	}
}

// forHelp returns the flag as pflag prints it, with its choices and its variable.
func (f Flag) forHelp() *pflag.Flag {
	shown := *f.Flag
	shown.Usage = f.Usage
	if len(f.Choices) > 0 {
		shown.Usage += ": " + Alternatives(f.Choices)
	}
	if f.Variable != "" {
		shown.Usage += " [$" + f.Variable + "]"
	}
	if f.Value != "" {
		shown.Value = placeholder{f.Flag.Value, f.Value}
	}
	return &shown
}

// placeholder is a value that pflag shows by a name.
type placeholder struct {
	pflag.Value
	name string
}

// Type implements [pflag.Value].
func (p placeholder) Type() string { return p.name }

// examplesBelow returns the first example of each subcommand, for a group without its own.
func examplesBelow(c *cobra.Command) string {
	var all []string
	for _, each := range c.Commands() {
		if first, _, _ := strings.Cut(each.Example, "\n\n"); first != "" && len(all) < examplesOfGroup {
			all = append(all, first)
		}
	}
	return strings.Join(all, "\n\n")
}

// wrapped returns text with lines of at most width bytes, each after indent.
func wrapped(indent, text string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := indent + paragraph
		for len(line) > width {
			end := strings.LastIndex(line[:width+1], " ")
			if end <= len(indent) {
				break
			}
			b.WriteString(line[:end] + "\n")
			line = indent + line[end+1:]
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
