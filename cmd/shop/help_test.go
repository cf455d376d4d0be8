package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/order"
)

// TestHelpIsPrintedOnRequest on stdout, with exit code 0, in every form of the request, and is the same in all of them.
func TestHelpIsPrintedOnRequest(t *testing.T) {
	t.Parallel()
	malformed := func(string) string { return "malformed" } // a bad variable does not keep the help back
	for _, p := range commands().Pages() {
		words := strings.Fields(p.Name())[1:]
		code, want, stderr := call(t, malformed, append([]string{"help"}, words...)...)
		if code != 0 || stderr != "" || !strings.HasPrefix(want, p.Command().Summary+".\n\nUsage:\n  "+p.Name()) {
			t.Errorf("help %q: exit code %d: %s%s", words, code, want, stderr)
		}
		forms := [][]string{append(slices.Clone(words), "--help"), append(slices.Clone(words), "-h")}
		if len(p.Command().Commands) > 0 {
			forms = append(forms, append(slices.Clone(words), "help"))
		}
		if len(words) == 0 {
			forms = append(forms, nil)
		}
		for _, form := range forms {
			if code, out, stderr := call(t, malformed, form...); code != 0 || out != want || stderr != "" {
				t.Errorf("%q: exit code %d: %s%s", form, code, out, stderr)
			}
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"version", "--version"} {
		if code, out, stderr := call(t, noEnv, form); code != 0 || strings.TrimSpace(out) == "" || strings.Count(out, "\n") != 1 || stderr != "" {
			t.Errorf("%s: exit code %d: %s%s", form, code, out, stderr)
		}
	}
}

// TestTypingErrorsGetASuggestion in the one line of the error.
func TestTypingErrorsGetASuggestion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"serv":                             `unknown command "serv": did you mean serve?`,
		"sell":                             `unknown command "sell": run shop help for the list`,
		"help serv":                        `help: unknown command "serv": did you mean serve?`,
		"help serve more":                  `help: serve: no command "more": shop serve has no subcommands`,
		"timers lst":                       `timers: unknown command "lst": did you mean list?`,
		"timers help lst":                  `timers: unknown command "lst": did you mean list?`,
		"timers drop":                      `timers: unknown command "drop": want list, get, fire, redrive, rebuild, pause, resume`,
		"timers":                           `timers: missing command: want list, get`,
		"timers --json list":               "timers: flag --json before the command: write shop timers COMMAND [flags]",
		"serve --lsten :80":                "serve: unknown flag --lsten: did you mean --listen?",
		"serve --auth key":                 `serve: --auth "key": did you mean keys?`,
		"demo --strategies naiv":           `demo: --strategies "naiv": unknown "naiv": did you mean naive?`,
		"lab throughput --strategies lau":  `lab throughput: --strategies "lau": unknown "lau": did you mean lua?`,
		"lab throughput --stores mariabd":  `lab throughput: --stores "mariabd": unknown "mariabd": did you mean mariadb?`,
		"events --types order,stok":        `events: --types "order,stok": unknown "stok": did you mean stock?`,
		"completion":                       "completion: missing SHELL",
		"completion bsh":                   `completion: SHELL "bsh": did you mean bash?`,
		"fence rebase":                     "fence rebase: missing SKU: run shop fence rebase --help",
		"config set permits":               "config set: missing VALUE",
		"keys create":                      "keys create: missing --customer ID or --admin",
		"audit more":                       `audit: unexpected argument "more"`,
		"serve --listen 1 --permits -1":    `serve: --listen "1": want HOST:PORT; --permits -1: want 0 to 1000000`,
		"serve --partition a b --canary=x": `serve: --canary "x": want true or false`,
	} {
		code, out, stderr := call(t, noEnv, strings.Fields(line)...)
		if code != 2 || out != "" || !strings.HasPrefix(stderr, "shop: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("shop %s: exit code %d, want %q: %s%s", line, code, want, out, stderr)
		}
	}
}

// TestEveryCommandIsDescribed: a summary, usage, two to four examples that parse, and flags that say what they do, with their unit.
func TestEveryCommandIsDescribed(t *testing.T) {
	t.Parallel()
	for _, p := range commands().Pages() {
		c := p.Command()
		if !unicode.IsUpper(rune(c.Summary[0])) || strings.HasSuffix(c.Summary, ".") || len(p.Usage()) == 0 {
			t.Errorf("%s: %q, %q", p.Name(), c.Summary, p.Usage())
		}
		if examples := p.Examples(); len(examples) < 2 || len(examples) > 4 {
			t.Errorf("%s has %d examples, want 2 to 4", p.Name(), len(examples))
		}
		for _, e := range p.Examples() {
			if err := commands().Parses(e.Line); err != nil || e.Purpose == "" {
				t.Errorf("%s: the example %q: %v", p.Name(), e.Line, err)
			}
		}
		for i, fl := range p.Flags() {
			describes(t, p, fl)
			if i > 0 && fl.Group != p.Flags()[i-1].Group && slices.ContainsFunc(p.Flags()[:i], func(other *cli.Flag) bool { return other.Group == fl.Group }) {
				t.Errorf("%s --%s: the group %q is in two parts", p.Name(), fl.Name, fl.Group)
			}
		}
		if len(p.Flags()) > 10 && p.Flags()[len(p.Flags())-1].Group == "" {
			t.Errorf("%s has %d flags without groups", p.Name(), len(p.Flags()))
		}
		_, help, _ := call(t, noEnv, append([]string{"help"}, strings.Fields(p.Name())[1:]...)...)
		for line := range strings.Lines(help) {
			if example := strings.HasPrefix(line, "  shop ") || strings.HasPrefix(line, "  SHOP_"); len(line) > 81 && !example && !strings.HasPrefix(line, "  1  ") {
				t.Errorf("%s: %d bytes are wider than a terminal: %s", p.Name(), len(line), line)
			}
		}
	}
}

var unit = regexp.MustCompile(`\d+(ms|s|m|h)\b`)

// describes fails the test unless a flag begins with a verb, and has a default and the unit of its value.
func describes(t *testing.T, p cli.Page, fl *cli.Flag) {
	t.Helper()
	if words := strings.Fields(fl.Sentence()); len(words) < 2 || strings.HasSuffix(strings.TrimSuffix(words[0], "."), "s") || fl.Usage == "" {
		t.Errorf("%s --%s: %q begins with no verb", p.Name(), fl.Name, fl.Usage)
	}
	switch {
	case fl.Kind != cli.Bool && (fl.Value == "" || fl.Default == ""):
		t.Errorf("%s --%s: placeholder %q, default %q", p.Name(), fl.Name, fl.Value, fl.Default)
	case fl.Kind == cli.Number && fl.Value == "N":
		t.Errorf("%s --%s: the placeholder names no unit", p.Name(), fl.Name)
	case fl.Kind == cli.Duration && !unit.MatchString(fl.Usage):
		t.Errorf("%s --%s: %q has no unit", p.Name(), fl.Name, fl.Usage)
	}
}

// TestTypesOfTimersInTheHelpExist: it names those of the service.
func TestTypesOfTimersInTheHelpExist(t *testing.T) {
	t.Parallel()
	_, help, _ := call(t, noEnv, "help", "timers")
	for _, name := range []string{order.ExpireTimer, order.PlaceTimer} {
		if !strings.Contains(strings.Join(strings.Fields(help), " "), "Timers of the type "+name) && !strings.Contains(strings.Join(strings.Fields(help), " "), "timers of the type "+name) {
			t.Errorf("no %s: %s", name, help)
		}
	}
}
