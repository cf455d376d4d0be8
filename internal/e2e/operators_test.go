package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

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
	if code, _, stderr := call(t, noEnv, "timers", "list", "--admin-url", "http://"+taken); code != 1 || !strings.Contains(stderr, "nothing listens") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestRefusedValueIsNamed by the commands that ask one: the value, and what is wanted.
func TestRefusedValueIsNamed(t *testing.T) {
	r := start(t, "--database", sqliteURL(t))
	for args, want := range map[string][]string{
		"config set permits many":           {`permits "many"`, "a whole number"},
		"config set order-ttl 5":            {`order-ttl "5"`, "a duration such as 90s"},
		"config set order-ttl 1ms":          {"order-ttl 1ms", "1s to 720h"},
		"config set reconciler-pace x":      {`reconciler-pace "x"`, "a duration such as 90s"},
		"config set log-level loud":         {`log-level "loud"`, "debug, info, warn or error"},
		"config set permits 8 --version=-1": {"/version"},
		"config get nothing":                {`"nothing"`, "log-level, order-ttl"},
	} {
		code, out, stderr := call(t, noEnv, append(strings.Fields(args), "--url="+r.url)...)
		if code == 0 || out != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, stderr)
		}
		for _, words := range want {
			if !strings.Contains(stderr, words) {
				t.Errorf("%s: want %q: %s", args, words, stderr)
			}
		}
	}
	broken := map[string]string{"SHOP_KEY": "shop_secret\nX: y"}
	if code, _, stderr := call(t, broken, "cluster", "members", "--url", r.url); code != 1 || !strings.Contains(stderr, "SHOP_KEY") || strings.Contains(stderr, "secret") {
		t.Errorf("a key with a line break: exit code %d: %s", code, stderr)
	}
}
