package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestTimersBadCommandLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"", "which command"},
		{"drop", "no command"},
		{"list more", "unexpected argument"},
		{"list --limit 0", "--limit"},
		{"list --limit many", "limit"},
		{"list --limit 1000001", "--limit"},
		{"list --state done", "--state"},
		{"list --url 127.0.0.1:8081", "--url"},
		{"list --url http://", "--url"},
		{"list --url http://127.0.0.1:1/api", "--url"},
		{"list --url http://a:b@127.0.0.1:1", "--url"},
		{"get order.expire", "want 2 arguments"},
		{"get order.expire a b", "unexpected argument"},
		{"get --state open order.expire a", "-state"},
		{"pause", "want 1 arguments"},
		{"redrive", "want 1 arguments"},
		{"get order.expire -- -x --json", "unexpected argument"},
	} {
		code, out, stderr := call(t, noEnv, append([]string{"timers"}, strings.Fields(c.args)...)...)
		if code != 2 || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, want %q: %s%s", c.args, code, c.want, out, stderr)
		}
	}
	for _, args := range []string{"help", "--help", "list --help", "get --help"} {
		if code, out, stderr := call(t, noEnv, append([]string{"timers"}, strings.Fields(args)...)...); code != 0 || !strings.Contains(out, "shop timers") {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
}

// Nobody but this machine may ask, and a port that is taken is named.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:8081", ":8081", "[::]:8081", "10.0.0.1:8081", "example.com:8081", "8081", "127.0.0.1:http", "127.0.0.1"} {
		code, out, stderr := call(t, noEnv, "serve", "--admin-listen", address)
		if code != 2 || out != "" || !strings.Contains(stderr, "--admin-listen") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", address, code, stderr)
		}
	}
	r := start(t, "--database", sqliteURL(t), "--admin-listen", "127.0.0.1:0")
	taken := strings.TrimPrefix(r.admin(t), "http://")
	code, _, stderr := call(t, noEnv, "serve", "--database", sqliteURL(t), "--listen", "127.0.0.1:0", "--admin-listen", taken)
	if code != 1 || !strings.Contains(stderr, taken) || !strings.Contains(stderr, "--admin-listen") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	r.want(t, http.StatusNotFound, "GET", "/api/v1/timers", "")
	r.stop()
	r.stopped(t)
	if code, _, stderr := call(t, noEnv, "timers", "list", "--url", "http://"+taken); code != 1 || !strings.Contains(stderr, "nothing listens") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
