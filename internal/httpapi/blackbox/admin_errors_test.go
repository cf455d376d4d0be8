package blackbox_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/timeout"
)

// brokenTimers returns an error from every call, except from reads if the timers are known.
type brokenTimers struct {
	httpapi.Timers
	err   error
	known bool
}

func (b brokenTimers) List(context.Context, timeout.Filter) ([]timeout.Row, error) {
	if b.known {
		return make([]timeout.Row, 1), nil
	}
	return nil, b.err
}

func (b brokenTimers) Get(context.Context, string, string) (timeout.Row, error) {
	if b.known {
		return timeout.Row{}, nil
	}
	return timeout.Row{}, b.err
}

func (b brokenTimers) Redrive(context.Context, string, ...string) (int, error) { return 0, b.err }

func (b brokenTimers) Pause(context.Context, string) error           { return b.err }
func (b brokenTimers) FireNow(context.Context, string, string) error { return b.err }
func (b brokenTimers) Resume(context.Context, string) error          { return b.err }

// TestBadRequestsForTimers has the mistakes that TestEveryOperationRefusesBadInput does not generate.
func TestBadRequestsForTimers(t *testing.T) {
	t.Parallel()
	s := newAdmin(t, brokenTimers{err: errors.New("must not be asked")})
	for path, method := range map[string]string{
		"?cursor=x":                     "GET",
		"?cursor=%21":                   "GET",
		"?cursor=MSBr":                  "GET", // "1 k"
		"?cursor=MSBrIGEg":              "GET", // "1 k a "
		"?after=x":                      "GET",
		"?after=MSBrIGE&cursor=MSBrIGE": "GET",
		"/k/a%20b":                      "GET",
		"/k/redrive?id=":                "POST",
	} {
		if got := s.must(t, 400, method, timers+path, ""); got["type"] != "/docs/problems/malformed-request" {
			t.Errorf("%s %s: %v", method, path, got)
		}
	}
	s.must(t, 400, "POST", timers+"/k/pause", "{}")
	s.must(t, 404, "GET", "/api/v1/skus", "")
	s.must(t, 404, "GET", timers+"/", "")
	s.must(t, 405, "DELETE", timers+"/k/x", "")
}

// TestTimersUnavailable: a response 503 says that nothing happened, or that the outcome of a change is unknown.
func TestTimersUnavailable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err          error
		status       int
		read, change string
	}{
		{timeout.ErrUnavailable, 503, "store-unavailable", "outcome-unknown"},
		{context.DeadlineExceeded, 503, "lock-timeout", "outcome-unknown"},
		{errors.New("disk on fire"), 500, "internal", "internal"},
	} {
		ask := func(q httpapi.Timers, method, path, want string) {
			t.Helper()
			if p := newAdmin(t, q).must(t, c.status, method, timers+path, ""); p["type"] != "/docs/problems/"+want || p["order_id"] != nil {
				t.Errorf("%v: %s %s: %v, want %s", c.err, method, path, p, want)
			}
		}
		q := brokenTimers{err: c.err}
		ask(q, "GET", "", c.read)
		ask(q, "GET", "/k/x", c.read)
		ask(q, "POST", "/k/redrive", c.read) // the kind is checked first
		ask(q, "POST", "/k/redrive?id=x", c.read)
		ask(q, "POST", "/k/pause", c.read)
		ask(q, "POST", "/k/x/fire", c.change)
		ask(q, "POST", "/k/resume", c.change)
		q.known = true
		ask(q, "POST", "/k/redrive", c.change)
		ask(q, "POST", "/k/redrive?id=x", c.change)
		ask(q, "POST", "/k/pause", c.change)
	}
}

// TestOtherSitesAreRefused: a page that somebody has open in a browser on the same
// machine can send requests here.
func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	q, _ := newQueue(t)
	s := newAdmin(t, q)
	for _, c := range []struct {
		method, host string
		header       http.Header
		want         int
	}{
		{"POST", "127.0.0.1:8081", nil, 200},
		{"POST", "[::1]:8081", nil, 200},
		{"POST", "localhost", http.Header{"Origin": {"http://localhost"}}, 200},
		{"GET", "127.0.0.1:8081", http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"POST", "127.0.0.1:8081", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"POST", "127.0.0.1:8081", http.Header{"Origin": {"https://shop.example"}}, 403},
		{"POST", "127.0.0.1:8081", http.Header{"Origin": {"null"}}, 403},
		{"POST", "rebound.example:8081", nil, 403},
		{"GET", "rebound.example", nil, 403},
		{"POST", "10.0.0.1:8081", nil, 403},
		{"POST", "localhost.example", nil, 403},
	} {
		r := httptest.NewRequest(c.method, timers+"/k/resume", http.NoBody)
		if c.method == "GET" {
			r = httptest.NewRequest(c.method, timers, http.NoBody)
		}
		r.Host = c.host
		maps.Copy(r.Header, c.header)
		if status, _, _ := s.send(t, r); status != c.want {
			t.Errorf("%s to %s with %v: %d, want %d", c.method, c.host, c.header, status, c.want)
		}
	}
}

// TestTimersAreNotPublic on the listener that clients use.
func TestTimersAreNotPublic(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for path := range specified(t, onAdminListener).Paths.Map() {
		for _, method := range []string{"GET", "POST"} {
			if status, _, body := s.do(httptest.NewRequest(method, path, http.NoBody)); status != 404 {
				t.Errorf("%s %s: %d %s", method, path, status, body)
			}
		}
	}
	if status, _, _ := s.do(httptest.NewRequest(http.MethodGet, "/debug/pprof/", http.NoBody)); status != 404 {
		t.Errorf("profiles are public: %d", status)
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	s := newAdmin(t, brokenTimers{})
	for path, want := range map[string]string{"": "goroutine", "heap?debug=1": "heap profile", "cmdline": "blackbox", "symbol": "num_symbols"} {
		status, _, body := s.do(httptest.NewRequest(http.MethodGet, "/debug/pprof/"+path, http.NoBody))
		if status != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%q: %d, want %q in %.200s", path, status, want, body)
		}
	}
}
