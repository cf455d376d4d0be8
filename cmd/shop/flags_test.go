package main

import (
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/cli"
)

// everyCommand has the arguments that each command needs alongside its flags.
var everyCommand = [][]string{
	{"serve"},
	{"demo"},
	{"audit"},
	{"lab"},
	{"lab", "throughput"},
	{"timers", "list"},
	{"timers", "get", "order.expire", "a"},
	{"timers", "fire", "order.expire", "a"},
	{"timers", "redrive", "order.expire"},
	{"timers", "rebuild", "order.expire"},
	{"timers", "pause", "order.expire"},
	{"timers", "resume", "order.expire"},
	{"cluster", "members"},
	{"cluster", "leader"},
	{"events"},
	{"config", "get"},
	{"config", "set", "permits", "8"},
	{"config", "watch"},
	{"keys", "create", "--admin"},
	{"keys", "list"},
	{"keys", "revoke", "aaaaaaaaaa"},
	{"fence", "list"},
	{"fence", "rebase", "a"},
	{"migrate"},
	{"healthcheck"},
}

var flagLine = regexp.MustCompile(`(?m)^  -([a-z-]+)(?: (\S+))?`)

// TestEveryFlagRefusesMalformedValues: of every command every flag with a form names the value and the form, also from the environment, in
// one line; and no command does anything then.
func TestEveryFlagRefusesMalformedValues(t *testing.T) {
	t.Chdir(t.TempDir())
	forms := map[string]string{"duration": "duration such as 90s", "int": "a whole number", "": "true or false"}
	tried := 0
	for _, args := range everyCommand {
		code, help, stderr := call(t, noEnv, append(slices.Clone(args), "--help")...)
		if code != 0 || stderr != "" {
			t.Fatalf("%q: exit code %d: %s", args, code, stderr)
		}
		for _, m := range flagLine.FindAllStringSubmatch(help, -1) {
			name, form := m[1], forms[m[2]]
			if name == "log-level" {
				form = "debug, info, warn or error"
			}
			if form == "" {
				continue // any text can be read
			}
			tried++
			const bad = "1s0.x"
			wrong := map[string]func() (int, string, string){
				"--" + name: func() (int, string, string) {
					return call(t, noEnv, append(slices.Clone(args), "--"+name+"="+bad)...)
				},
			}
			if args[0] != "keys" { // which reads only stores from the environment
				wrong[cli.Variable(name)] = func() (int, string, string) {
					return call(t, func(v string) string { return map[string]string{cli.Variable(name): bad}[v] }, args...)
				}
			}
			for source, run := range wrong {
				code, out, stderr := run()
				if code != 2 || out != "" || strings.Count(stderr, "\n") != 1 {
					t.Errorf("%q, %s: exit code %d: %s%s", args, source, code, out, stderr)
				}
				for _, want := range []string{source, bad, form} {
					if !strings.Contains(stderr, want) {
						t.Errorf("%q, %s: want %q: %s", args, source, want, stderr)
					}
				}
			}
		}
		code, out, stderr := call(t, noEnv, append(slices.Clone(args), "--no-such-flag")...)
		if code != 2 || out != "" || !strings.Contains(stderr, "no flag --no-such-flag") || !strings.Contains(stderr, "shop "+args[0]) {
			t.Errorf("%q: exit code %d: %s%s", args, code, out, stderr)
		}
	}
	if tried < 40 {
		t.Errorf("only %d flags were tried", tried)
	}
	if files := contents(t); len(files) != 0 {
		t.Errorf("refused commands have left %q", slices.Collect(maps.Keys(files)))
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
	for _, args := range everyCommand {
		_, help, _ := call(t, noEnv, append(slices.Clone(args), "--help")...)
		if !strings.Contains(help, "\n  -url ") {
			continue
		}
		for _, bad := range []string{"nowhere", "127.0.0.1:8080", "http://", "ftp://127.0.0.1:1", "http://127.0.0.1:1/api", "http://a:b@127.0.0.1:1", "http://127.0.0.1:1?a=b", "http://127.0.0.1:port"} {
			code, out, stderr := call(t, noEnv, append(slices.Clone(args), "--url", bad)...)
			if code != 2 || out != "" || !strings.Contains(stderr, "--url") || !strings.Contains(stderr, "http://HOST:PORT") {
				t.Errorf("%q, %s: exit code %d: %s%s", args, bad, code, out, stderr)
			}
		}
	}
}
