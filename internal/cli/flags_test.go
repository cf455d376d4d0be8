package cli_test

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/cli"
)

// TestForms of values that the package flag reads.
func TestForms(t *testing.T) {
	f := cli.NewFlags(cli.Process{Getenv: noEnv, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}, "x", "y")
	f.Duration("wait", time.Second, "")
	f.Int("n", 1, "")
	for args, want := range map[string]string{
		"--wait 5": `--wait "5": want a duration such as 90s`, "-n 99999999999999999999": `--n "99999999999999999999": want a whole number`,
		"--n": "--n: want a value", "--m 1": "there is no flag --m: shop x --help",
	} {
		if err := f.Parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if f.ErrorHandling() != flag.ContinueOnError {
		t.Error("a bad flag would end the process")
	}
}
