package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The name of a setting is sent as it was given, whatever it has in it.
func TestNamesOfSettingsAreEscaped(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.EscapedPath() + "?" + r.URL.RawQuery
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	if code, _, _ := call(t, noEnv, "config", "set", "--url", server.URL, "a?b=/c", "8"); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if got, want := <-asked, "/api/v1/cluster/config/a%3Fb=%2Fc?"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

// A watch of settings continues when an instance was unavailable for a while, and reports the gap once.
func TestWatchOfSettingsReconnects(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		value := "64"
		switch asked++; asked {
		case 2, 3:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case 4:
			value = "8"
		case 5:
			stop()
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Instance-Id", "one")
		fmt.Fprintf(w, `{"members":[],"config":[{"name":"permits","value":%q,"version":1}]}`, value)
	}))
	defer server.Close()
	var out, said bytes.Buffer
	if code := run(ctx, noEnv, &out, &said, "config", "watch", "--url", server.URL); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if text := out.String(); !strings.Contains(text, "64") || !strings.Contains(text, " 8 ") || strings.Count(said.String(), "retrying") != 1 {
		t.Errorf("%s\n%s", text, said.String())
	}
}
