package cli

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// parse reads args and then the environment, for the flags that args do not set. It returns the arguments alongside
// the flags. These may be in any order; after -- follows no flag.
func (f *Flags) parse(args []string) (rest []string, err error) {
	var plain []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, plain = args[:i], args[i+1:]
	}
	for {
		if err := f.set.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, errHelp
		} else if err != nil {
			return nil, UsageError{errors.New(f.explain(err))}
		}
		if f.set.NArg() == 0 {
			break
		}
		rest, args = append(rest, f.set.Arg(0)), f.set.Args()[1:]
	}
	if err := f.environment(); err != nil {
		return nil, err
	}
	rest = append(rest, plain...)
	return rest, f.count(rest)
}

// count says which argument is missing, or is one too many.
func (f *Flags) count(rest []string) error {
	c := f.at.last()
	want := strings.Fields(c.Args)
	more := fmt.Sprintf(": run %s --help for the usage", f.at.name())
	for i, name := range want {
		switch optional := strings.HasPrefix(name, "["); {
		case i >= len(rest) && !optional:
			return UsageError{errors.New("missing " + name + more)}
		case strings.HasSuffix(name, "...]"):
			return nil
		case i < len(rest) && c.Values != nil:
			if err := oneOf(rest[i], c.Values); err != nil {
				return UsageError{fmt.Errorf("%s %.40q: %w", name, rest[i], err)}
			}
		}
	}
	switch {
	case len(rest) <= len(want):
		return nil
	case !c.Secret:
		return UsageError{fmt.Errorf("unexpected argument %q%s", rest[len(want)], more)}
	case len(want) == 0:
		return UsageError{errors.New("unexpected arguments: want none" + more)}
	}
	return UsageError{fmt.Errorf("%d arguments: want %s%s", len(rest), c.Args, more)}
}

// invalid matches what the package flag says of a value that it cannot read.
var invalid = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]+): `)

// explain says what is wrong with a command line, and what is wanted instead.
func (f *Flags) explain(err error) string {
	text := err.Error()
	if m := invalid.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("--%s %s: %s", m[2], m[1], f.find(m[2]).wanted(text[len(m[0]):]))
	}
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		var names []string
		for _, each := range f.all {
			names = append(names, each.Name)
		}
		if near := nearest(name, names); near != "" {
			return fmt.Sprintf("unknown flag --%s: did you mean --%s?", name, near)
		}
		return fmt.Sprintf("unknown flag --%s: run %s --help for the list", name, f.at.name())
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return fmt.Sprintf("--%s: missing value: want %s", name, f.find(name).Value)
	}
	return text
}

// wanted describes the values of a flag that has refused one with a reason.
func (fl *Flag) wanted(reason string) string {
	switch {
	case fl.Kind != Text:
		return "want " + string(fl.Kind)
	case len(fl.Choices) > 0 && strings.Contains(reason, "unknown name"): // as a level says it
		return "want " + alternatives(fl.Choices)
	}
	return reason
}

// environment reads the variables of the flags that are not set yet.
func (f *Flags) environment() error {
	var bad []error
	for _, each := range f.all {
		if each.Variable == "" || f.Given(each.Name) {
			continue
		}
		if v := f.Getenv(each.Variable); v != "" {
			if err := f.set.Set(each.Name, v); err != nil {
				bad = append(bad, fmt.Errorf("%s=%q: %s", each.Variable, v, each.wanted(err.Error())))
			}
		}
	}
	if len(bad) > 0 {
		return UsageError{errors.Join(bad...)}
	}
	return nil
}
