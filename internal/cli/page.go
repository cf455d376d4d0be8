package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// examplesOfGroup is how many examples the help of a group has at most.
const examplesOfGroup = 4

// Page is what the help and the reference page say about a command.
type Page struct{ at path }

// Pages returns the pages of c and of all commands below it, parents first.
func (c *Command) Pages() []Page { return pages(path{c}) }

func pages(at path) []Page {
	all := []Page{{at}}
	for i := range at.last().Commands {
		all = append(all, pages(at.below(i))...)
	}
	return all
}

// Name returns the words that a user types, such as "shop timers list".
func (p Page) Name() string { return p.at.name() }

// Command returns the command.
func (p Page) Command() *Command { return p.at.last() }

// Usage returns the forms of the command line.
func (p Page) Usage() []string {
	c := p.at.last()
	var forms []string
	if c.Define != nil {
		form := strings.TrimSpace(p.Name() + " " + c.Args)
		if len(p.Flags()) > 0 {
			form += " [flags]"
		}
		forms = append(forms, form)
	}
	if len(c.Commands) > 0 {
		forms = append(forms, p.Name()+" COMMAND [flags]")
	}
	return forms
}

// Flags returns the flags in the order of the help.
func (p Page) Flags() []*Flag {
	define := p.at.last().Define
	if define == nil {
		return nil
	}
	f := newFlags(nowhere(), p.at)
	define(f)
	return f.all
}

// nowhere is a process for commands that are not run.
func nowhere() Process {
	return Process{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
}

// Examples returns the examples of the command. A group without its own has the first one of each subcommand.
func (p Page) Examples() []Example {
	c := p.at.last()
	if len(c.Examples) > 0 {
		return c.Examples
	}
	var all []Example
	for _, each := range c.Commands {
		if len(each.Examples) > 0 && len(all) < examplesOfGroup {
			all = append(all, each.Examples[0])
		}
	}
	return all
}

// Head returns the flag with the placeholder of its value.
func (fl *Flag) Head() string { return strings.TrimSpace("--" + fl.Name + " " + fl.Value) }

// Sentence returns the usage as a sentence, with the values that the flag takes.
func (fl *Flag) Sentence() string {
	text := strings.ToUpper(fl.Usage[:1]) + fl.Usage[1:]
	if len(fl.Choices) > 0 {
		some := ". One of "
		if fl.List {
			some = ". Any of "
		}
		text = strings.TrimSuffix(text, ".") + some + alternatives(fl.Choices)
	}
	return strings.TrimSuffix(text, ".") + "."
}

// Help returns the command that shows the help of the commands below root.
func Help(root *Command) Command {
	return Command{
		Name: "help", Args: "[COMMAND] [SUBCOMMAND]", Summary: "Show the help of a command",
		Examples: []Example{
			{"The flags of an instance, in groups", "shop help serve"},
			{"A command of a group", "shop help timers list"},
		},
		Define: func(f *Flags) Run {
			return func(_ context.Context, args []string) error { return help(f.Stdout, path{root}, args) }
		},
	}
}

// VariableRule says which flags have an environment variable.
const VariableRule = "Every flag of shop serve has an environment variable: SHOP_ and its name in capitals. " +
	"On other commands, only the flags that name a service or a store have one: --url, --admin-url, --database, --redis, --redlock, --zookeeper, --zookeeper-auth, --etcd. " +
	"A flag has precedence over its variable, and the variable over the default. The help of a command shows its variables."

// Parses says what is wrong with the flags and the number of arguments of a command line such as that of an [Example]. A line
// may set variables in front, and may pass the output on. It runs nothing.
func (c *Command) Parses(line string) error {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "source <("), ")")
	line, _, _ = strings.Cut(line, " > ")
	words := strings.Fields(line)
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != c.Name {
		return fmt.Errorf("%q does not run %s", line, c.Name)
	}
	at := path{c}
	words = words[1:]
	for len(words) > 0 && len(at.last().Commands) > 0 && !strings.HasPrefix(words[0], "-") {
		child, err := at.child(words[0])
		if err != nil {
			return err
		}
		at, words = child, words[1:]
	}
	if at.last().Define == nil {
		return at.misused("missing command")
	}
	f := newFlags(nowhere(), at)
	at.last().Define(f)
	_, err := f.parse(words)
	return err
}
