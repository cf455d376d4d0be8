package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestMain ends at once where a lab of a test starts this program, to measure how busy the machine is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "lab" {
		return
	}
	testbedtest.Main(m)
}

func noEnv(string) string { return "" }

// call runs a command and returns its exit code and what it printed.
func call(t testing.TB, getenv func(string) string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, getenv, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

func sqliteURL(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
}

// badCommandLines are refused before anything is done.
var badCommandLines = [][]string{
	{"serve", "more"},
	{"serve", "--listen", "8080"},
	{"serve", "--instance", "a b"},
	{"serve", "--listen", "127.0.0.1:99999"},
	{"serve", "--log-level", "loud"},
	{"serve", "--database", "postgres://x"},
	{"serve", "--database", "sqlite:"},
	{"serve", "--database", "sqlite::memory:"},
	{"serve", "--database", "mysql://127.0.0.1"},
	{"serve", "--database", "mysql://user:secret@127.0.0.1:port/shop"},
	{"serve", "--redis", "localhost:6379"},
	{"serve", "--redis", "redis://["},
	{"serve", "--redlock", "redis://:secret@a:1"},
	{"serve", "--redlock", "redis://a:1,redis://b:1,redis://c:1,redis://d:1"},
	{"serve", "--redlock", "redis://a:1,redis://b:1,redis://a:1/2"},
	{"serve", "--redlock", "redis://a:1,b:1,redis://c:1"},
	{"serve", "--zookeeper", "localhost"},
	{"serve", "--zookeeper", "a:2181,"},
	{"serve", "--zookeeper-auth", "user:secret"},
	{"serve", "--zookeeper", "a:2181", "--zookeeper-auth", "secret"},
	{"serve", "--zookeeper", "a:2181", "--zookeeper-auth", ":secret"},
	{"serve", "--etcd", "http://a:2379"},
	{"serve", "--etcd", "a:0"},
	{"serve", "--order-ttl", "0s"},
	{"doctor", "--redis", "localhost:6379"},
	{"doctor", "--database", "mysql://user:secret@127.0.0.1:port/shop"},
	{"doctor", "more"},
	{"serve", "--partition", "no spaces"},
	{"serve", "--permits", "-1"},
	{"serve", "--permits", "1000001"},
	{"serve", "--customer-rate", "-2"},
	{"serve", "--key-retention", "59m"},
	{"serve", "--retention", "23h"},
	{"serve", "--retention", "-24h"},
	{"serve", "--customer-rate", "1000001"},
	{"serve", "--max-open-orders", "-1"},
	{"serve", "--auth", "open"},
	{"serve", "--canary", "--partition", "trial"},
	{"events", "--types", "fish"},
	{"events", "--types", "order,"},
	{"demo", "--stock", "0"},
	{"demo", "--stock", "-1"},
	{"demo", "--attempts", "199"},
	{"demo", "--instances", "0"},
	{"demo", "--strategies", "naive,naive"},
	{"demo", "--strategies", "naiv"},
	{"demo", "--url", "http://127.0.0.1:1"},
	{"demo", "--redis", "redis://["},
	{"demo", "--json", "--keep"},
	{"demo", "--zookeeper", "a"},
	{"demo", "--all", "--url", "http://127.0.0.1:1", "--database", "sqlite:shop.db"},
	{"demo", "--etcd", "a:1", "--url", "http://127.0.0.1:1", "--database", "sqlite:shop.db"},
	{"fence"},
	{"fence", "rebase"},
	{"fence", "rebase", "a", "b"},
	{"fence", "raise", "a"},
	{"fence", "rebase", "a b"},
	{"fence", "rebase", "a", "--etcd", "a:1"},
	{"fence", "list", "a"},
	{"fence", "list", "--etcd", "a"},
	{"fence", "list", "--zookeeper", "a:0"},
	{"fence", "rebase", "a", "--database", "shop.db"},
	{"demo", "--database", "shop.db"},
	{"audit", "--database", "shop.db"},
	{"lab", "--listen", "0.0.0.0:8090"},
	{"lab", "--instances", "0"},
	{"lab", "--redis", "127.0.0.1"},
}

func TestBadCommandLines(t *testing.T) {
	for _, args := range badCommandLines {
		t.Chdir(t.TempDir())
		code, out, stderr := call(t, noEnv, args...)
		if code != 2 || out != "" {
			t.Errorf("%q: exit code %d, printed %q", args, code, out)
		}
		if strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "secret") {
			t.Errorf("%q: want one line, got %q", args, stderr)
		}
	}
}
