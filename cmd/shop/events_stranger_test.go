package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEventsCommandMeetsAStranger where an instance was a member, and goes on at the next one.
func TestEventsCommandMeetsAStranger(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var strangers, streams atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		strangers.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer stranger.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Instance-Id", "shop-1")
		switch {
		case r.URL.Path == "/api/v1/cluster":
			fmt.Fprintf(w, `{"members":[{"name":"shop-2","address":%q}],"config":[]}`, strings.TrimPrefix(stranger.URL, "http://"))
		case streams.Add(1) > 1:
			stop()
		default:
			fmt.Fprint(w, "retry: 1\n\n")
		}
	}))
	defer server.Close()
	out, problems := new(lockedBuffer), new(lockedBuffer)
	if err := run(ctx, []string{"events", "--url", server.URL}, noEnv, strings.NewReader(""), out, problems); err != nil {
		t.Error(err)
	}
	if strangers.Load() != 1 || streams.Load() != 2 {
		t.Errorf("%d questions to a stranger, %d streams: %s", strangers.Load(), streams.Load(), problems)
	}
}
