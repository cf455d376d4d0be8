package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/app"
)

// Flags is a flag set whose flags can also be set by the environment, with the process of its command.
type Flags struct {
	*flag.FlagSet
	Process

	what string
}

// NewFlags returns the flags of a command that does what it says.
func NewFlags(p Process, name, what string) *Flags {
	f := &Flags{flag.NewFlagSet(name, flag.ContinueOnError), p, what}
	f.SetOutput(io.Discard)
	f.Usage = func() {} // the package would print all flags for every mistake
	return f
}

// Database defines --database, which is where the stock and the orders are.
func (f *Flags) Database(database *string) {
	f.StringVar(database, "database", app.DefaultDatabase, "sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB")
}

// help lists the flags.
func (f *Flags) help() {
	fmt.Fprintf(f.Stdout, "shop %s: %s\n\n", f.Name(), f.what)
	f.SetOutput(f.Stdout)
	f.PrintDefaults()
}

// Variable returns the environment variable of a flag.
func Variable(name string) string {
	return "SHOP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Parse reads the environment and then args, which win. Anything wrong is a
// [UsageError] that names the flag or the variable.
func (f *Flags) Parse(args []string) error {
	_, err := f.ParseWith(args, 0, 0)
	return err
}

// ParseWith does the same for a command that takes between least and most
// arguments alongside its flags, in any order, and returns them. What follows -- is no flag.
func (f *Flags) ParseWith(args []string, least, most int) (rest []string, err error) {
	if err := f.environment(); err != nil {
		return nil, err
	}
	var plain []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, plain = args[:i], args[i+1:]
	}
	for {
		if err := f.FlagSet.Parse(args); errors.Is(err, flag.ErrHelp) {
			f.help()
			return nil, errHelp
		} else if err != nil {
			return nil, UsageError{fmt.Errorf("%s: %s", f.Name(), f.explain(err))}
		}
		if f.NArg() == 0 {
			break
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
	switch rest = append(rest, plain...); {
	case len(rest) > most:
		return nil, UsageError{fmt.Errorf("%s: unexpected argument %q", f.Name(), rest[most])}
	case len(rest) < least:
		return nil, UsageError{fmt.Errorf("%s: want %d arguments, not %d", f.Name(), least, len(rest))}
	}
	return rest, nil
}

// aDuration is the form of a duration, in words.
const aDuration = "a duration such as 90s, 15m or 1h30m"

// invalid matches what the package flag says of a value that it cannot read.
var invalid = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]+): `)

// explain says what is wrong with a command line, and what is wanted instead.
func (f *Flags) explain(err error) string {
	text := err.Error()
	command, _, _ := strings.Cut(f.Name(), " [")
	if m := invalid.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("--%s %s: want %s", m[2], m[1], form(f.Lookup(m[2]), err))
	}
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return fmt.Sprintf("there is no flag --%s: shop %s --help lists those that there are", name, command)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Sprintf("--%s: want a value", name)
	}
	return text
}

// form describes the values of a flag whose value was refused with err.
func form(fl *flag.Flag, err error) string {
	if g, ok := fl.Value.(flag.Getter); ok {
		switch g.Get().(type) {
		case time.Duration:
			return aDuration
		case int, int64:
			return "a whole number"
		case bool:
			return "true or false"
		case *slog.Level:
			return "debug, info, warn or error"
		}
	}
	return err.Error()
}

// environment reads the variables.
func (f *Flags) environment() error {
	var bad []error
	f.VisitAll(func(fl *flag.Flag) {
		if v := f.Getenv(Variable(fl.Name)); v != "" {
			if err := f.Set(fl.Name, v); err != nil {
				bad = append(bad, fmt.Errorf("%s=%q: want %s", Variable(fl.Name), v, form(fl, err)))
			}
		}
	})
	if len(bad) > 0 {
		return UsageError{errors.Join(bad...)}
	}
	return nil
}

// Given returns the names of the flags that were set.
func (f *Flags) Given() map[string]bool {
	set := make(map[string]bool)
	f.Visit(func(fl *flag.Flag) { set[fl.Name] = true })
	return set
}
