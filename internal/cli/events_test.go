package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestEventsCommandKeepsItsPlace over a stream that ends before it has sent an id. After a second beginning, the
// command reports that events may be missing.
func TestEventsCommandKeepsItsPlace(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	streams := []string{"", "id: a:E:1\nevent: reset\ndata: {\"reason\":\"start\"}\n\n", "", "id: a:E:2\nevent: reset\ndata: {\"reason\":\"start\"}\n\n"}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("X-Instance-Id", "shop-1")
		switch {
		case r.URL.Path != "/api/v1/events":
			w.WriteHeader(http.StatusNotFound)
			return
		case len(asked) == len(streams):
			stop()
			return
		}
		fmt.Fprint(w, "retry: 1\n\n", streams[len(asked)])
		asked = append(asked, r.Header.Get("Last-Event-ID"))
	}))
	defer server.Close()
	var out, problems bytes.Buffer
	if code := run(ctx, noEnv, &out, &problems, "events", "--url", server.URL); code != 0 {
		t.Errorf("exit code %d", code)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"", "", "a:E:1", "a:E:1"}; !slices.Equal(asked, want) {
		t.Errorf("it came with %q, want %q", asked, want)
	}
	if n := strings.Count(problems.String(), "missing"); n != 1 {
		t.Errorf("%d times: %s", n, problems.String())
	}
}
