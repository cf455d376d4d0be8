package main

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"example.com/shop/internal/cli"
)

// pages returns all commands of the program, parents first. People run them.
func pages() []*cobra.Command { return below(program(cli.Process{Getenv: noEnv})) }

func below(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, each := range c.Commands() {
		if each.IsAvailableCommand() {
			all = append(all, below(each)...)
		}
	}
	return all
}

// everyCommand returns the commands that do more than to show their subcommands.
func everyCommand() []*cobra.Command {
	return slices.DeleteFunc(pages(), func(c *cobra.Command) bool { return strings.Contains(c.Use, "COMMAND") })
}

// commandLine returns the words of a command, and an argument for each that it needs.
func commandLine(c *cobra.Command) []string {
	words := strings.Fields(c.CommandPath())[1:]
	for _, arg := range strings.Fields(c.Use)[1:] {
		if !strings.HasPrefix(arg, "[") {
			words = append(words, cmp.Or(map[string]string{"PREFIX": "aaaaaaaaaa"}[arg], "a"))
		}
	}
	return words
}

// form returns what a message says of the values of a flag; empty: any text can be read.
func form(fl cli.Flag) string {
	if len(fl.Choices) > 0 {
		return fl.Choices[len(fl.Choices)-1]
	}
	return map[string]string{"bool": "true or false", "int": "a whole number", "int64": "a whole number", "duration": "a duration such as 90s"}[fl.Flag.Value.Type()]
}

// TestEveryFlagRefusesMalformedValues: the error is one line with the value and the expected form, also for the
// environment. The command then does nothing.
func TestEveryFlagRefusesMalformedValues(t *testing.T) {
	t.Chdir(t.TempDir())
	tried := 0
	for _, p := range everyCommand() {
		line := commandLine(p)
		for _, fl := range cli.FlagsOf(p) {
			if form(fl) == "" {
				continue
			}
			tried++
			const bad = "1s0.x"
			wrong := map[string]func() (int, string, string){
				"--" + fl.Name: func() (int, string, string) {
					return call(t, noEnv, append(slices.Clone(line), "--"+fl.Name+"="+bad)...)
				},
			}
			if fl.Variable != "" {
				wrong[fl.Variable] = func() (int, string, string) {
					return call(t, func(v string) string { return map[string]string{fl.Variable: bad}[v] }, line...)
				}
			}
			for source, run := range wrong {
				code, out, stderr := run()
				if code != 2 || out != "" || strings.Count(stderr, "\n") != 1 {
					t.Errorf("%q, %s: exit code %d: %s%s", line, source, code, out, stderr)
				}
				for _, want := range []string{source, bad, form(fl)} {
					if !strings.Contains(stderr, want) {
						t.Errorf("%q, %s: want %q: %s", line, source, want, stderr)
					}
				}
			}
		}
		code, out, stderr := call(t, noEnv, append(slices.Clone(line), "--no-such-flag")...)
		if code != 2 || out != "" || !strings.Contains(stderr, "unknown flag --no-such-flag") || !strings.Contains(stderr, p.CommandPath()) {
			t.Errorf("%q: exit code %d: %s%s", line, code, out, stderr)
		}
	}
	if tried < 40 {
		t.Errorf("only %d flags were tried", tried)
	}
	if files := contents(t); len(files) != 0 {
		t.Errorf("refused commands have left %q", slices.Collect(maps.Keys(files)))
	}
}

// TestFlagsWithoutVariableReadNone: a variable of another command, such as SHOP_LISTEN of an instance, has no effect on them.
func TestFlagsWithoutVariableReadNone(t *testing.T) {
	t.Parallel()
	for _, p := range everyCommand() {
		for _, fl := range cli.FlagsOf(p) {
			place := slices.Contains([]string{"url", "admin-url", "database", "redis", "redlock", "zookeeper", "zookeeper-auth", "etcd"}, fl.Name)
			want := p.CommandPath() == "shop serve" || place && (p.CommandPath() != "shop demo" || fl.Name != "url")
			if got := fl.Variable != ""; got != want {
				t.Errorf("%s --%s: variable %q", p.CommandPath(), fl.Name, fl.Variable)
			}
			if fl.Variable != "" && fl.Variable != "SHOP_"+strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_")) {
				t.Errorf("%s --%s: variable %q", p.CommandPath(), fl.Name, fl.Variable)
			}
		}
	}
	env := func(name string) string {
		return map[string]string{"SHOP_STOCK": "many", "SHOP_JSON": "x", "SHOP_ALL": "x", "SHOP_STATE": "x", "SHOP_LIMIT": "x", "SHOP_URL": "x", "SHOP_ADMIN_URL": "http://127.0.0.1:1"}[name]
	}
	if code, _, stderr := call(t, env, "timers", "list"); code != 1 || !strings.Contains(stderr, "nothing listens at http://127.0.0.1:1") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestBadAddressChangesNothing: an instance that cannot listen says so before it creates a database.
func TestBadAddressChangesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const elsewhere = "192.0.2.1:8080" // an address for documentation, which no machine has
	for name, args := range map[string][]string{
		"listen":       {"--listen", taken.Addr().String()},
		"foreign":      {"--listen", elsewhere},
		"unknown":      {"--listen", "no-such-host.invalid:8080"},
		"admin-listen": {"--listen", "127.0.0.1:0", "--admin-listen", taken.Addr().String()},
		"one for both": {"--listen", "127.0.0.1:8097", "--admin-listen", "127.0.0.1:8097"},
		"metrics":      {"--listen", "127.0.0.1:0", "--metrics-listen", taken.Addr().String()},
		"one for two":  {"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:8098", "--metrics-listen", "127.0.0.1:8098"},
	} {
		code, out, stderr := call(t, noEnv, append([]string{"serve"}, args...)...)
		address := args[len(args)-1]
		if code != 1 || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, args[len(args)-2]+" "+address) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, stderr)
		}
	}
	if files := contents(t); len(files) != 0 {
		t.Errorf("refused instances have left %q", slices.Collect(maps.Keys(files)))
	}
}

// TestEveryURLIsChecked before anybody is asked.
func TestEveryURLIsChecked(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, p := range everyCommand() {
		at := slices.IndexFunc(cli.FlagsOf(p), func(fl cli.Flag) bool { return fl.Name == "url" || fl.Name == "admin-url" })
		if at < 0 {
			continue
		}
		flag, variable := "--"+cli.FlagsOf(p)[at].Name, cli.FlagsOf(p)[at].Variable
		tried++
		for _, bad := range []string{"nowhere", "127.0.0.1:8080", "http://", "ftp://127.0.0.1:1", "http://127.0.0.1:1/api", "http://a:b@127.0.0.1:1", "http://127.0.0.1:1?a=b", "http://127.0.0.1:port"} {
			line := append(commandLine(p), flag, bad)
			code, out, stderr := call(t, noEnv, line...)
			if code != 2 || out != "" || !strings.Contains(stderr, flag+" ") || !strings.Contains(stderr, "http://HOST:PORT") {
				t.Errorf("%q: exit code %d: %s%s", line, code, out, stderr)
			}
			if variable == "" {
				continue
			}
			env := func(name string) string { return map[string]string{variable: bad}[name] }
			code, out, stderr = call(t, env, commandLine(p)...)
			if code != 2 || out != "" || !strings.Contains(stderr, variable+`="`) || !strings.Contains(stderr, "http://HOST:PORT") {
				t.Errorf("%s=%s %q: exit code %d: %s%s", variable, bad, line, code, out, stderr)
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d commands were tried", tried)
	}
}
