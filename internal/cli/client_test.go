package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// withKey has the key of an admin in the environment.
func withKey(name string) string {
	if name == "SHOP_KEY" {
		return "secret"
	}
	return ""
}

// foreignServer is a server that is no instance. It counts requests, and answers none as an instance would.
func foreignServer(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// TestEventsCommandStaysAtItsURLs: it uses no address that a member announces. It continues at the next URL of the
// user, also if another program listens at one of them.
func TestEventsCommandStaysAtItsURLs(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	announced, asked := foreignServer(t)
	next, visits := foreignServer(t)
	var streams atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Instance-Id", "shop-1")
		switch {
		case r.URL.Path == "/api/v1/cluster":
			fmt.Fprintf(w, `{"members":[{"name":"shop-2","address":%q}],"config":[]}`, strings.TrimPrefix(announced, "http://"))
		case streams.Add(1) > 1:
			stop()
		default:
			fmt.Fprint(w, "retry: 1\n\n")
		}
	}))
	defer server.Close()
	var out, problems bytes.Buffer
	if code := run(ctx, withKey, &out, &problems, "events", "--url", server.URL+","+next); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if asked.Load() != 0 || visits.Load() != 1 || streams.Load() != 2 {
		t.Errorf("%d requests to an announced address, %d to the second URL, %d streams: %s", asked.Load(), visits.Load(), streams.Load(), problems.String())
	}
}

// TestKeyIsNotRedirected: a command sends its key only to the address that the user names, not even to another port
// of the host.
func TestKeyIsNotRedirected(t *testing.T) {
	t.Parallel()
	elsewhere, asked := foreignServer(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Instance-Id", "shop-1")
		http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	for _, args := range [][]string{
		{"events", "--url", server.URL},
		{"cluster", "members", "--url", server.URL},
		{"config", "set", "permits", "8", "--url", server.URL},
		{"timers", "list", "--admin-url", server.URL},
		{"healthcheck", "--url", server.URL},
	} {
		code, _, stderr := call(t, withKey, args...)
		if code != 1 || !strings.Contains(stderr, elsewhere) {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests went elsewhere", asked.Load())
	}
}
