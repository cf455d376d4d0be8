package cli

import (
	"encoding"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/app"
)

// Flags are the flags of a command, in groups, with the process of the command.
//
// A usage has the form "`VALUE`: do something": VALUE is the placeholder that the help shows, and the rest
// is a sentence. Without a placeholder the help shows one for the type.
type Flags struct {
	Process

	at    path
	set   *flag.FlagSet
	all   []*Flag // in the order of their definition
	group string
	every bool // flags have a variable, and not only those of connections
}

// Flag is a flag as the help, the completion and the reference pages show it.
type Flag struct {
	Name, Group string
	Value       string // placeholder; empty: the flag takes none
	Usage       string // sentence
	Default     string // as the help shows it; empty: off
	Variable    string // environment variable; empty: none
	Kind        Kind
	Choices     []string // the values that it takes; empty: any
	List        bool     // it takes several choices, with commas between them
}

// Kind is the form of the values of a flag.
type Kind string

// The kinds.
const (
	Text     Kind = "text"
	Bool     Kind = "true or false"
	Number   Kind = "a whole number"
	Duration Kind = "a duration such as 90s, 15m or 1h30m"
)

// connections are the flags that say where something is. Each has a variable, of whichever command it is.
var connections = []string{"url", adminURL, "database", "redis", "redlock", "zookeeper", "zookeeper-auth", "etcd"}

// newFlags returns the flags of the command at the end of a path, without any.
func newFlags(p Process, at path) *Flags {
	f := &Flags{Process: p, at: at, set: flag.NewFlagSet(at.name(), flag.ContinueOnError)}
	f.set.SetOutput(io.Discard)
	f.set.Usage = func() {} // the package would print all flags for every mistake
	return f
}

// Command returns the words that a user types for the command, without the program.
func (f *Flags) Command() string { return f.at[1:].name() }

// Group begins a group of flags: the help lists those that follow under this heading.
func (f *Flags) Group(heading string) { f.group = heading }

// EveryVariable gives each flag of the command a variable.
func (f *Flags) EveryVariable() { f.every = true }

// StringVar defines a flag with text.
func (f *Flags) StringVar(p *string, name, value, usage string) {
	f.set.StringVar(p, name, value, usage)
	f.note(name, "TEXT", Text)
}

// URLVar defines a flag with the URL of a listener, or with several URLs and commas between them.
func (f *Flags) URLVar(p *string, name, value, usage string) {
	*p = value
	f.checkedVar(name, value, usage, func(text string) error {
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
	f.note(name, "URL", Text)
}

// BoolVar defines a flag that is on or off.
func (f *Flags) BoolVar(p *bool, name string, value bool, usage string) {
	f.set.BoolVar(p, name, value, usage)
	f.note(name, "", Bool)
}

// IntVar defines a flag with a whole number.
func (f *Flags) IntVar(p *int, name string, value int, usage string) {
	f.set.IntVar(p, name, value, usage)
	f.note(name, "N", Number)
}

// Int64Var defines a flag with a whole number.
func (f *Flags) Int64Var(p *int64, name string, value int64, usage string) {
	f.set.Int64Var(p, name, value, usage)
	f.note(name, "N", Number)
}

// DurationVar defines a flag with a duration.
func (f *Flags) DurationVar(p *time.Duration, name string, value time.Duration, usage string) {
	f.set.DurationVar(p, name, value, usage)
	f.note(name, "DURATION", Duration)
}

// TextVar defines a flag whose value reads and writes itself, and is one of choices.
func (f *Flags) TextVar(p encoding.TextUnmarshaler, name string, value encoding.TextMarshaler, choices []string, usage string) {
	f.set.TextVar(p, name, value, usage)
	f.note(name, "TEXT", Text).Choices = choices
}

// ChoiceVar defines a flag with one of choices, or none if that is the default.
func (f *Flags) ChoiceVar(p *string, name, value string, choices []string, usage string) {
	*p = value
	f.checkedVar(name, value, usage, func(text string) error {
		*p = text
		return oneOf(text, choices)
	})
	f.note(name, "TEXT", Text).Choices = choices
}

// ListVar defines a flag with some of choices, separated by commas. Its default is *p.
func (f *Flags) ListVar(p *[]string, name string, choices []string, usage string) {
	f.checkedVar(name, strings.Join(*p, ","), usage, func(text string) error {
		*p = nil
		if text == "" {
			return nil
		}
		for each := range strings.SplitSeq(text, ",") {
			if err := oneOf(each, choices); err != nil {
				return fmt.Errorf("unknown %.40q: %w", each, err)
			}
			*p = append(*p, each)
		}
		return nil
	})
	noted := f.note(name, "NAME,...", Text)
	noted.Choices, noted.List = choices, true
}

// checkedVar defines a flag with a default, for whose texts set is called.
func (f *Flags) checkedVar(name, value, usage string, set func(text string) error) {
	f.set.Func(name, usage, set)
	f.set.Lookup(name).DefValue = value
}

// DefaultText replaces the default of a flag in the help, for one that the command computes.
func (f *Flags) DefaultText(name, text string) { f.find(name).Default = text }

// WithoutVariable takes the variable from a flag.
func (f *Flags) WithoutVariable(name string) { f.find(name).Variable = "" }

// DatabaseVar defines --database, which is where the stock and the orders are.
func (f *Flags) DatabaseVar(p *string) {
	f.StringVar(p, "database", app.DefaultDatabase, "`URL`: use the database at sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB")
}

// note records the flag that was defined last.
func (f *Flags) note(name, placeholder string, kind Kind) *Flag {
	defined := f.set.Lookup(name)
	noted := &Flag{Name: name, Group: f.group, Value: placeholder, Kind: kind, Usage: defined.Usage}
	if value, usage, ok := strings.Cut(defined.Usage, "`: "); ok && strings.HasPrefix(value, "`") {
		noted.Value, noted.Usage = value[1:], usage
	}
	if kind == Text && defined.DefValue == "" {
		noted.Default = "none"
	} else if kind != Bool || defined.DefValue == "true" {
		noted.Default = defined.DefValue
	}
	if kind == Duration {
		noted.Default = shortDuration(noted.Default)
	}
	if f.every || slices.Contains(connections, name) {
		noted.Variable = variable(name)
	}
	f.all = append(f.all, noted)
	return noted
}

// shortDuration drops the zeros of a duration such as 15m0s.
func shortDuration(text string) string {
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// find returns a flag that is defined.
func (f *Flags) find(name string) *Flag {
	i := slices.IndexFunc(f.all, func(each *Flag) bool { return each.Name == name })
	return f.all[i]
}

// variable returns the environment variable of a flag that has one.
func variable(name string) string {
	return "SHOP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Given reports whether the user has set a flag.
func (f *Flags) Given(name string) bool {
	given := false
	f.set.Visit(func(fl *flag.Flag) { given = given || fl.Name == name })
	return given
}

// oneOf says what is wrong with a name that must be one of some.
func oneOf(name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("did you mean %s?", near)
	}
	return fmt.Errorf("want %s", alternatives(names))
}

// alternatives lists names for a sentence.
func alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
