package cli

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/shop/internal/app"
)

// VariableRule says which flags have an environment variable.
const VariableRule = "Every flag of shop serve has an environment variable: SHOP_ and its name in capitals. " +
	"On other commands, only the flags that name a service or a store have one: --url, --admin-url, --database, --redis, --redlock, --zookeeper, --zookeeper-auth, --etcd. " +
	"A flag has precedence over its variable, and the variable over the default. The help of a command shows its variables. " +
	"docs/how-to/connect-securely.md shows URLs with TLS and passwords."

// connections are the flags that say where something is. Each has a variable, of whichever command it is.
var connections = []string{"url", adminURL, "database", "redis", "redlock", "zookeeper", "zookeeper-auth", "etcd"}

// The annotations of a flag.
const (
	headingNote  = "heading"
	choicesNote  = "choices"
	listNote     = "list"
	variableNote = "variable" // without a value: none
)

// Flag is a flag as the help and the reference pages show it. Its usage has the form "`VALUE`: do something".
type Flag struct {
	*pflag.Flag
	Heading  string   // of its group
	Value    string   // placeholder; empty: the flag takes none
	Usage    string   // without the placeholder
	Choices  []string // the values that it takes; empty: any
	List     bool     // it takes several choices, with commas between them
	Variable string   // environment variable; empty: none
}

// FlagsOf returns the flags of a command in the order of their definition. That of the help is not among them.
func FlagsOf(c *cobra.Command) []Flag {
	var all []Flag
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		each := Flag{
			Flag: f, Heading: note(f, headingNote), Choices: f.Annotations[choicesNote], List: noted(f, listNote),
			Variable: note(f, variableNote),
		}
		if value, usage, ok := strings.Cut(f.Usage, "`: "); ok {
			each.Value, each.Usage = value[1:], usage
		} else {
			each.Value, each.Usage = pflag.UnquoteUsage(f)
			each.Value = strings.ToUpper(each.Value)
		}
		all = append(all, each)
	})
	return all
}

// note returns an annotation of a flag that has one value at most.
func note(f *pflag.Flag, key string) string { return strings.Join(f.Annotations[key], "") }

// noted reports whether a flag has an annotation, with or without a value.
func noted(f *pflag.Flag, key string) bool {
	_, ok := f.Annotations[key]
	return ok
}

// ChoiceVar defines a flag with one of choices, or none if that is the default.
func (f *Flags) ChoiceVar(p *string, name, value string, choices []string, usage string) {
	*p = value
	f.Func(name, usage, func(text string) error {
		*p = text
		return OneOf(text, choices)
	})
	f.annotate(name, choicesNote, choices...)
}

// ListVar defines a flag with some of choices, separated by commas. Its default is *p.
func (f *Flags) ListVar(p *[]string, name string, choices []string, usage string) {
	f.Func(name, usage, func(text string) error {
		*p = nil
		if text == "" {
			return nil
		}
		for each := range strings.SplitSeq(text, ",") {
			if err := OneOf(each, choices); err != nil {
				return fmt.Errorf("unknown %.40q: %w", each, err)
			}
			*p = append(*p, each)
		}
		return nil
	})
	f.DefaultText(name, strings.Join(*p, ","))
	f.annotate(name, choicesNote, choices...)
	f.annotate(name, listNote)
}

// TextVar defines a flag whose value reads and writes itself, and is one of choices.
func (f *Flags) TextVar(p encoding.TextUnmarshaler, name string, value encoding.TextMarshaler, choices []string, usage string) {
	f.FlagSet.TextVar(p, name, value, usage)
	f.annotate(name, choicesNote, choices...)
}

// URLVar defines a flag with the URL of a listener, or with several URLs and commas between them.
func (f *Flags) URLVar(p *string, name, value, usage string) {
	*p = value
	f.Func(name, usage, func(text string) error {
		urls := []string{text}
		if strings.HasPrefix(usage, "`URL,...`") {
			urls = strings.Split(text, ",")
		}
		for i := range urls {
			base, err := validBase(urls[i])
			if err != nil {
				return err
			}
			urls[i] = base
		}
		*p = strings.Join(urls, ",")
		return nil
	})
	f.DefaultText(name, value)
}

// DatabaseVar defines --database, which is where the stock and the orders are.
func (f *Flags) DatabaseVar(p *string) {
	f.StringVar(p, "database", app.DefaultDatabase, "`URL`: use the database at sqlite:FILE, mysql://USER:PASSWORD@HOST:3306/DB or postgres://USER:PASSWORD@HOST/DB; of several hosts, HOST:PORT,HOST:PORT, the one that accepts writes")
}

// variable returns the environment variable of a flag that has one.
func variable(name string) string {
	return "SHOP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// finishFlags names the variables of connections, and completes the values of flags with choices.
func finishFlags(c *cobra.Command) {
	for _, f := range FlagsOf(c) {
		if slices.Contains(connections, f.Name) && !noted(f.Flag, variableNote) {
			f.Annotations = with(f.Annotations, variableNote, []string{variable(f.Name)})
		}
		if f.Value == "FOLDER" {
			_ = cobra.MarkFlagDirname(c.Flags(), f.Name) // it is defined
		}
		if f.Choices != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, f.complete) // it is defined, and this is the first time
		}
	}
}

// complete returns the values that begin with the text typed, or continue the list typed.
func (f Flag) complete(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	head := ""
	if f.List {
		head = typed[:strings.LastIndex(typed, ",")+1]
	}
	var values []string
	for _, each := range f.Choices {
		if strings.HasPrefix(head+each, typed) {
			values = append(values, head+each)
		}
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}

// readVariables sets the flags of a command that the command line has not set and that have a variable.
func readVariables(c *cobra.Command, getenv func(string) string) error {
	var bad []error
	for _, f := range FlagsOf(c) {
		if f.Variable == "" || f.Changed {
			continue
		}
		v := getenv(f.Variable)
		if v == "" {
			continue
		}
		if err := f.Flag.Value.Set(v); err != nil {
			bad = append(bad, fmt.Errorf("%s=%q: %s", f.Variable, v, wanted(f.Flag, err)))
		}
		f.Changed = true
	}
	if len(bad) > 0 {
		return UsageError{errors.Join(bad...)}
	}
	return nil
}

// explain says what is wrong with the flags of a command line, and what is wanted instead.
func explain(c *cobra.Command, err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		text = fmt.Sprintf("--%s %q: %s", e.GetFlag().Name, e.GetValue(), wanted(e.GetFlag(), e.Unwrap()))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		all := FlagsOf(c)
		value := all[slices.IndexFunc(all, func(f Flag) bool { return f.Name == e.GetFlag().Name })].Value
		text = fmt.Sprintf("--%s: missing value: want %s", e.GetFlag().Name, value)
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		word, _, _ := strings.Cut(cmp.Or(e.GetSpecifiedShortnames(), e.GetSpecifiedName()), "=")
		dashes := "--"
		if e.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		names := []string{"help"}
		for _, f := range FlagsOf(c) {
			names = append(names, f.Name)
		}
		advice := fmt.Sprintf("run %s --help for the list", c.CommandPath())
		if near := nearest(word, names); len(near) > 0 {
			advice = "did you mean --" + strings.Join(near, " or --") + "?"
		}
		text = fmt.Sprintf("unknown flag %s%s: %s", dashes, word, advice)
	}
	return UsageError{errors.New(text)}
}

// wanted describes the values of a flag that has refused one with a reason.
func wanted(f *pflag.Flag, reason error) string {
	switch f.Value.Type() {
	case "bool":
		return "want true or false"
	case "int", "int64":
		return "want a whole number"
	case "duration":
		return "want a duration such as 90s, 15m or 1h30m"
	case "func": // it says what it wants
		return reason.Error()
	}
	return "want " + Alternatives(f.Annotations[choicesNote])
}

// nearest returns the names that the user may have meant by word, as cobra finds them for commands.
func nearest(word string, names []string) []string {
	c := &cobra.Command{SuggestionsMinimumDistance: min(2, len(word)-1)}
	for _, name := range names {
		c.AddCommand(&cobra.Command{Use: name, SuggestFor: strings.Split(name, "-")[1:], Run: func(*cobra.Command, []string) {}})
	}
	switch {
	case word == "":
		return nil
	case slices.Contains(names, word): // only the dashes are wrong
		return []string{word}
	}
	return c.SuggestionsFor(word)
}

// OneOf says what is wrong with a name that must be one of some.
func OneOf(name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	if near := nearest(name, names); len(near) > 0 {
		return fmt.Errorf("did you mean %s?", Alternatives(near))
	}
	return fmt.Errorf("want %s", Alternatives(names))
}

// Alternatives lists names for a sentence.
func Alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
