package cli_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/cli"
)

// probe runs a command with some flags, and returns what the flags were, and the message of the usage error.
func probe(t *testing.T, env map[string]string, args string) (wait time.Duration, mode string, names []string, message string) {
	t.Helper()
	root := cli.Command{Name: "shop", Commands: []cli.Command{{Name: "x", Args: "A [B]", Define: func(f *cli.Flags) cli.Run {
		f.EveryVariable()
		n, url := 0, ""
		f.DurationVar(&wait, "wait", time.Second, "wait")
		f.IntVar(&n, "n", 1, "count")
		f.ChoiceVar(&mode, "mode", "", []string{"fast", "slow"}, "run in this mode")
		f.ListVar(&names, "names", []string{"naive", "local", "redis"}, "sell by these")
		f.StringVar(&url, "url", "", "ask here")
		f.WithoutVariable("url")
		return func(context.Context, []string) error { return nil }
	}}}}
	getenv := func(name string) string { return env[name] }
	var stderr strings.Builder
	p := cli.Process{Getenv: getenv, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr}
	if code := cli.Execute(t.Context(), cli.Program(p, root), append([]string{"x"}, strings.Fields(args)...)); code != 0 && code != 2 {
		t.Errorf("%s: exit code %d", args, code)
	}
	return wait, mode, names, strings.TrimSuffix(strings.TrimPrefix(stderr.String(), "shop: "), "\n")
}

// TestMistakesAreExplained: each message has the flag, the value, and what to do.
func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"a --wait 5":                  `x: --wait "5": want a duration such as 90s`,
		"a --n 99999999999999999999":  `x: --n "99999999999999999999": want a whole number`,
		"a --n":                       "x: --n: missing value: want INT",
		"a --zzz 1":                   "x: unknown flag --zzz: run shop x --help",
		"a --wiat 1s":                 "x: unknown flag --wiat: did you mean --wait?",
		"a --mode fats":               `x: --mode "fats": did you mean fast?`,
		"a --mode other":              `x: --mode "other": want fast or slow`,
		"a --names naive,redsi":       `x: --names "naive,redsi": unknown "redsi": did you mean redis?`,
		"a --names naive,":            `x: --names "naive,": unknown "": want naive, local or redis`,
		"a -wait 1s":                  "x: unknown flag -wait: did you mean --wait?",
		"a -z":                        "x: unknown flag -z: run shop x --help",
		"":                            "x: accepts between 1 and 2 arg(s), received 0: want shop x A [B] [flags]",
		"a b c":                       "x: accepts between 1 and 2 arg(s), received 3: want shop x A [B] [flags]",
		"a -- b --wait":               "x: accepts between 1 and 2 arg(s), received 3",
		"--wait 5s --mode slow a b d": "x: accepts between 1 and 2 arg(s), received 3",
	} {
		if _, _, _, message := probe(t, nil, args); !strings.HasPrefix(message, want) {
			t.Errorf("%s: %s, want %s", args, message, want)
		}
	}
}

// TestFlagHasPrecedenceOverVariable, also if the value of the variable is malformed; and a flag without a variable reads none.
func TestFlagHasPrecedenceOverVariable(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SHOP_WAIT": "2s", "SHOP_MODE": "slow", "SHOP_NAMES": "local,redis", "SHOP_URL": "x", "SHOP_N": "many"}
	if wait, mode, names, message := probe(t, env, "a --mode fast --n 1"); message != "" || wait != 2*time.Second || mode != "fast" || strings.Join(names, " ") != "local redis" {
		t.Errorf("%s, %v, %v, %v", message, wait, mode, names)
	}
	if _, _, _, message := probe(t, env, "a"); message != `x: SHOP_N="many": want a whole number` {
		t.Error(message)
	}
}
