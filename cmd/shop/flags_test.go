package main

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/cli"
)

// everyCommand returns the pages of all commands that can be run.
func everyCommand() []cli.Page {
	return slices.DeleteFunc(commands().Pages(), func(p cli.Page) bool { return p.Command().Define == nil })
}

// commandLine returns the words of a command, and an argument for each that it needs.
func commandLine(p cli.Page) []string {
	words := strings.Fields(p.Name())[1:]
	for arg := range strings.FieldsSeq(p.Command().Args) {
		if !strings.HasPrefix(arg, "[") {
			words = append(words, cmp.Or(map[string]string{"PREFIX": "aaaaaaaaaa", "SHELL": "bash"}[arg], "a"))
		}
	}
	return words
}

// TestEveryFlagRefusesMalformedValues: the error is one line with the value and the expected form, also for the
// environment. The command then does nothing.
func TestEveryFlagRefusesMalformedValues(t *testing.T) {
	t.Chdir(t.TempDir())
	tried := 0
	for _, p := range everyCommand() {
		line := commandLine(p)
		for _, fl := range p.Flags() {
			form := string(fl.Kind)
			if len(fl.Choices) > 0 {
				form = fl.Choices[len(fl.Choices)-1]
			} else if fl.Kind == cli.Text {
				continue // any text can be read
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
				for _, want := range []string{source, bad, form} {
					if !strings.Contains(stderr, want) {
						t.Errorf("%q, %s: want %q: %s", line, source, want, stderr)
					}
				}
			}
		}
		code, out, stderr := call(t, noEnv, append(slices.Clone(line), "--no-such-flag")...)
		if code != 2 || out != "" || !strings.Contains(stderr, "unknown flag --no-such-flag") || !strings.Contains(stderr, p.Name()) {
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
		for _, fl := range p.Flags() {
			place := slices.Contains([]string{"url", "admin-url", "database", "redis", "redlock", "zookeeper", "zookeeper-auth", "etcd"}, fl.Name)
			want := p.Name() == "shop serve" || place && (p.Name() != "shop demo" || fl.Name != "url")
			if got := fl.Variable != ""; got != want {
				t.Errorf("%s --%s: variable %q", p.Name(), fl.Name, fl.Variable)
			}
			if fl.Variable != "" && fl.Variable != "SHOP_"+strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_")) {
				t.Errorf("%s --%s: variable %q", p.Name(), fl.Name, fl.Variable)
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
		at := slices.IndexFunc(p.Flags(), func(fl *cli.Flag) bool { return fl.Name == "url" || fl.Name == "admin-url" })
		if at < 0 {
			continue
		}
		flag, variable := "--"+p.Flags()[at].Name, p.Flags()[at].Variable
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
