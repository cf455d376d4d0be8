package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
)

// The command tells all instances that share its Redis, and that listen; the streams of the key
// end. Without Redis the key is revoked all the same.
func TestRevokeTellsTheInstances(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	header, text := newKey(t, s.database, "--customer", "ann")
	prefix := text[5:15]
	fleet := []*running{
		start(t, append(s.flags, "--auth", "keys", "--instance", "shop-1")...), start(t, append(s.flags, "--auth", "keys", "--instance", "shop-2")...),
	}
	ends := make(chan error, len(fleet))
	client := customers(t)
	for _, r := range fleet {
		w := newPage(t, "?types=order")
		w.key = header[1]
		go func() { ends <- w.watch(t.Context(), r.url) }()
		testbedtest.Eventually(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	}
	var revoked time.Time
	testbedtest.Eventually(t, "the instances are told", func() bool { // one that does not listen yet hears it the next time
		shows(t, []string{"keys", "revoke", "--database", s.database, "--redis", s.redis, prefix}, "was revoked")
		revoked = time.Now()
		for end := revoked.Add(time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			if !slices.ContainsFunc(fleet, func(r *running) bool {
				return !strings.Contains(r.stderr.String(), "a key was revoked") || !strings.Contains(r.stderr.String(), prefix)
			}) {
				return true
			}
		}
		return false
	})
	for _, r := range fleet {
		if a := insist(func() answer { return ask(t.Context(), client, http.MethodGet, r.url+"/api/v1/orders", "", header...) }); a.status != http.StatusUnauthorized {
			t.Errorf("the key that was revoked: %v", a)
		}
	}
	for range fleet {
		<-ends
	}
	t.Logf("two instances have refused the key, and its streams have ended, %v after the command", time.Since(revoked).Round(time.Millisecond))

	other, text := newKey(t, s.database, "--customer", "ben")
	code, out, stderr := call(t, noEnv, "keys", "revoke", "--database", s.database, "--redis", "redis://127.0.0.1:1/0", text)
	if code != 0 || !strings.Contains(out, "was revoked") || !strings.Contains(stderr, "not told") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	if a := insist(func() answer {
		return ask(t.Context(), client, http.MethodGet, fleet[0].url+"/api/v1/orders", "", other...)
	}); a.status != http.StatusUnauthorized {
		t.Errorf("the key that was revoked: %v", a)
	}
	if code, _, stderr := call(t, noEnv, "keys", "revoke", "--database", s.database, "--redis", "localhost", text); code != 2 || !strings.Contains(stderr, "--redis") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
