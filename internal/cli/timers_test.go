package cli_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
)

// More timers than a page has are all shown, up to --limit. It is said when there are more.
func TestTimersListReadsAllPages(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"": "next-1", "next-1": "next-2", "next-2": ""}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Instance-Id", "i1")
		after := r.URL.Query().Get("cursor")
		page := httpapi.TimerPage{Timers: []httpapi.Timer{{Kind: "k", ID: "behind-" + after}}}
		if next := pages[after]; next != "" {
			page.Next = &next
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	code, out, _ := call(t, noEnv, "timers", "list", "--admin-url", server.URL)
	for _, want := range []string{"behind-  ", "behind-next-1", "behind-next-2"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if code != 0 || strings.Count(out, "\n") != 4 {
		t.Errorf("a heading and three timers, got\n%s", out)
	}
	code, out, stderr := call(t, noEnv, "timers", "list", "--limit", "2", "--admin-url", server.URL)
	if code != 0 || strings.Count(out, "\n") != 3 || !strings.Contains(stderr, "More than 2 timers exist") {
		t.Errorf("a heading and two timers, got\n%s%s", out, stderr)
	}
}

// The port may be closed, or another program may answer.
func TestTimersCommandReportsAWrongServer(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	l.Close()
	env := func(k string) string {
		return map[string]string{"SHOP_ADMIN_URL": "http://" + free, "SHOP_URL": "http://127.0.0.1:1"}[k]
	}
	code, _, stderr := call(t, env, "timers", "list")
	if code != 1 || !strings.Contains(stderr, "shop serve --admin-listen "+free+", or name another one with --admin-url") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, answer := range []string{"{}", "<html>", `{"timers":[]}`} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		defer other.Close()
		if code, out, stderr := call(t, noEnv, "timers", "list", "--admin-url", other.URL); code != 1 || out != "" || !strings.Contains(stderr, "is not the --admin-listen") {
			t.Errorf("%s: exit code %d: %s%s", answer, code, out, stderr)
		}
	}
}

func TestTimersBadCommandLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"", "missing command"},
		{"list more", "accepts 0 arg(s)"},
		{"list --limit 0", "--limit"},
		{"list --limit 1000001", "--limit"},
		{"list --state done", "--state"},
		{"list --url http://127.0.0.1:8081", "unknown flag --url: did you mean --admin-url?"},
		{"get order.expire", "want shop timers get KIND ID"},
		{"get order.expire a b", "accepts 2 arg(s), received 3"},
		{"get --state open order.expire a", "unknown flag --state"},
		{"pause", "want shop timers pause KIND"},
		{"redrive", "want shop timers redrive KIND [ID...]"},
		{"get order.expire -- -x --json", "accepts 2 arg(s), received 3"},
	} {
		code, out, stderr := call(t, noEnv, append([]string{"timers"}, strings.Fields(c.args)...)...)
		if code != 2 || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, want %q: %s%s", c.args, code, c.want, out, stderr)
		}
	}
}
