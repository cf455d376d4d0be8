package main

import (
	"strings"
	"testing"
)

// TestWhatAnInstanceRefusesIsNamed by the commands that ask one: the value, and what is wanted.
func TestWhatAnInstanceRefusesIsNamed(t *testing.T) {
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
	broken := func(name string) string {
		if name == "SHOP_KEY" {
			return "shop_secret\nX: y"
		}
		return ""
	}
	if code, _, stderr := call(t, broken, "cluster", "members", "--url", r.url); code != 1 || !strings.Contains(stderr, "SHOP_KEY") || strings.Contains(stderr, "secret") {
		t.Errorf("a key with a line break: exit code %d: %s", code, stderr)
	}
}
