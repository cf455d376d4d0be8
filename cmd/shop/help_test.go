package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"example.com/shop/internal/cli"
	"example.com/shop/internal/order"
)

// TestHelpIsPrintedOnRequest on stdout, with exit code 0, in every form of the request, and is the same in all of them.
func TestHelpIsPrintedOnRequest(t *testing.T) {
	t.Parallel()
	malformed := func(string) string { return "malformed" } // a bad variable does not keep the help back
	for _, p := range pages() {
		words := strings.Fields(p.CommandPath())[1:]
		code, want, stderr := call(t, malformed, append([]string{"help"}, words...)...)
		if code != 0 || stderr != "" || !strings.HasPrefix(want, p.Short+".\n\nUsage:\n  "+p.CommandPath()) {
			t.Errorf("help %q: exit code %d: %s%s", words, code, want, stderr)
		}
		forms := [][]string{append(slices.Clone(words), "--help"), append(slices.Clone(words), "-h")}
		if p.HasSubCommands() {
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
	for _, form := range []string{"version", "--version", "-v"} {
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
		"help serve more":                  `help: no command "more": shop serve has no subcommands`,
		"timers lst":                       `timers: unknown command "lst": did you mean list or get?`,
		"timers drop":                      `timers: unknown command "drop": want list, get, fire, redrive, pause, resume`,
		"timers":                           `timers: missing command: want list, get`,
		"timers --json list":               "timers: unknown flag --json: run shop timers --help for the list",
		"serve --lsten :80":                "serve: unknown flag --lsten: did you mean --listen?",
		"serve -listen :80":                `serve: unknown flag -listen: did you mean --listen?`,
		"serve --auth key":                 `serve: --auth "key": did you mean keys?`,
		"demo --strategies naiv":           `demo: --strategies "naiv": unknown "naiv": did you mean naive?`,
		"events --types order,stok":        `events: --types "order,stok": unknown "stok": did you mean stock?`,
		"completion":                       "completion: missing command: want bash, zsh, fish, powershell",
		"completion bsh":                   `completion: unknown command "bsh": did you mean bash, zsh or fish?`,
		"fence rebase":                     "fence rebase: accepts 1 arg(s), received 0: want shop fence rebase SKU [flags]",
		"config set permits":               "config set: accepts 2 arg(s), received 1: want shop config set NAME VALUE [flags]",
		"keys create":                      "keys create: missing --customer ID or --admin",
		"audit more":                       "audit: accepts 0 arg(s), received 1: want shop audit [flags]",
		"serve --listen 1 --permits -1":    `serve: --listen "1": want HOST:PORT; --permits -1: want 0 to 1000000`,
		"serve --partition a b --canary=x": `serve: --canary "x": want true or false`,
		"lab no-such":                      `lab: unknown command "no-such": want list, run`,
		"lab list more":                    "lab list: accepts 0 arg(s), received 1",
		"lab run":                          "lab run: accepts 1 arg(s), received 0: want shop lab run NAME",
		"lab run no-such":                  `lab run: NAME "no-such": want all, mutex, lost-update`,
		"lab run 99":                       `lab run: NAME "99": want all, mutex`,
	} {
		code, out, stderr := call(t, noEnv, strings.Fields(line)...)
		if code != 2 || out != "" || !strings.HasPrefix(stderr, "shop: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("shop %s: exit code %d, want %q: %s%s", line, code, want, out, stderr)
		}
	}
}

// parses returns what is wrong with the flags and arguments of a command line, such as that of an example. A line may set variables
// in front, and may pass the output on. It runs nothing.
func parses(line string) error {
	line, _, _ = strings.Cut(line, " > ")
	words := strings.Fields(line)
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "shop" {
		return fmt.Errorf("%q does not run shop", line)
	}
	c, words, err := program(cli.Process{Getenv: noEnv}).Find(words[1:])
	if err != nil {
		return err
	}
	if err := c.ParseFlags(words); err != nil {
		return err
	}
	if strings.Contains(c.Use, "COMMAND") {
		return fmt.Errorf("%q does nothing", line)
	}
	return c.ValidateArgs(c.Flags().Args())
}

// ofCobra reports whether cobra describes the command.
func ofCobra(c *cobra.Command) bool {
	return strings.HasPrefix(c.CommandPath(), "shop completion")
}

// TestEveryCommandIsDescribed: a summary, usage, two to four examples that parse, and flags that say what they do, with their unit.
func TestEveryCommandIsDescribed(t *testing.T) {
	t.Parallel()
	for _, p := range slices.DeleteFunc(pages(), ofCobra) {
		if !unicode.IsUpper(rune(p.Short[0])) || strings.HasSuffix(p.Short, ".") || len(cli.Usage(p)) == 0 {
			t.Errorf("%s: %q, %q", p.CommandPath(), p.Short, cli.Usage(p))
		}
		examples := strings.Split(p.Example, "\n\n")
		if len(examples) < 2 || len(examples) > 4 {
			t.Errorf("%s has %d examples, want 2 to 4", p.CommandPath(), len(examples))
		}
		for _, e := range examples {
			purpose, line, _ := strings.Cut(e, "\n")
			if err := parses(line); err != nil || len(purpose) <= len("  # ") {
				t.Errorf("%s: the example %q: %v", p.CommandPath(), line, err)
			}
		}
		flags := cli.FlagsOf(p)
		for i, fl := range flags {
			describes(t, p, fl)
			if i > 0 && fl.Heading != flags[i-1].Heading && slices.ContainsFunc(flags[:i], func(other cli.Flag) bool { return other.Heading == fl.Heading }) {
				t.Errorf("%s --%s: the group %q is in two parts", p.CommandPath(), fl.Name, fl.Heading)
			}
		}
		if len(flags) > 10 && flags[len(flags)-1].Heading == "" {
			t.Errorf("%s has %d flags without groups", p.CommandPath(), len(flags))
		}
		_, help, _ := call(t, noEnv, append([]string{"help"}, strings.Fields(p.CommandPath())[1:]...)...)
		for line := range strings.Lines(help) {
			if example := strings.HasPrefix(line, "  shop ") || strings.HasPrefix(line, "  SHOP_"); len(line) > 81 && !example && !strings.HasPrefix(line, "  1  ") {
				t.Errorf("%s: %d bytes are wider than a terminal: %s", p.CommandPath(), len(line), line)
			}
		}
	}
}

var unit = regexp.MustCompile(`\d+(ms|s|m|h)\b`)

// describes fails the test unless a flag begins with a verb, and has a default and the unit of its value.
func describes(t *testing.T, p *cobra.Command, fl cli.Flag) {
	t.Helper()
	if words := strings.Fields(fl.Usage); len(words) < 2 || strings.HasSuffix(strings.TrimSuffix(words[0], "."), "s") {
		t.Errorf("%s --%s: %q begins with no verb", p.CommandPath(), fl.Name, fl.Usage)
	}
	switch kind := fl.Flag.Value.Type(); {
	case kind != "bool" && fl.Value == "":
		t.Errorf("%s --%s has no placeholder", p.CommandPath(), fl.Name)
	case fl.Value == "INT":
		t.Errorf("%s --%s: the placeholder names no unit", p.CommandPath(), fl.Name)
	case kind == "duration" && !unit.MatchString(fl.Usage):
		t.Errorf("%s --%s: %q has no unit", p.CommandPath(), fl.Name, fl.Usage)
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
