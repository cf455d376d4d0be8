package blackbox_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
)

// TestHead is answered as GET is, without the body (RFC 9110, 9.3.2), everywhere.
func TestHead(t *testing.T) {
	t.Parallel()
	domain := fake{func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil }}
	s := newHandler(t, httpapi.Config{Orders: domain, Stock: domain})
	server := httptest.NewServer(s)
	defer server.Close()
	ask := func(method, path string) (status int, header http.Header, content string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return resp.StatusCode, resp.Header, string(body)
	}
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 200, "/docs": 200, "/docs/problems/lock-timeout": 200, "/docs/init.js": 200, "/api/v1/openapi.yaml": 200,
		"/api/v1/skus": 200, "/api/v1/skus/s1": 200, orders: 200, orders + "/" + someOrder: 200, "/api/v1/audit": 200,
		"/nothing": 404, "/api/v1/skus?limit=0": 400, orders + "/" + someOrder + "/pay": 405,
	} {
		status, get, _ := ask(http.MethodGet, path)
		headStatus, head, body := ask(http.MethodHead, path)
		if headStatus != want || status != want || body != "" {
			t.Errorf("%s: HEAD %d with %d bytes, GET %d, want %d", path, headStatus, len(body), status, want)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "ETag", "X-Instance-Id", "Allow"} {
			if a, b := get.Get(name), head.Get(name); a != b && (name != "Content-Length" || b != "") {
				t.Errorf("%s: %s is %q for GET and %q for HEAD", path, name, a, b)
			}
		}
	}
	status, header, _ := ask(http.MethodDelete, orders)
	allow := strings.Split(header.Get("Allow"), ", ")
	if status != http.StatusMethodNotAllowed || !slices.Contains(allow, "HEAD") || !slices.Contains(allow, "GET") || !slices.Contains(allow, "POST") {
		t.Errorf("%d, %v", status, header)
	}
	status, header, _ = ask(http.MethodDelete, orders+"/"+someOrder+"/pay")
	if status != http.StatusMethodNotAllowed || header.Get("Allow") != "POST" {
		t.Errorf("%d, %v", status, header)
	}
}

// TestHeadOfAStream says that there is one, and ends.
func TestHeadOfAStream(t *testing.T) {
	t.Parallel()
	s := newStationWith(t, nil, events.FeedConfig{}, time.Hour, time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, header, body := s.shop.do(httptest.NewRequestWithContext(ctx, http.MethodHead, "/api/v1/events", nil))
	if ctx.Err() != nil || status != 200 || header.Get("Content-Type") != "text/event-stream" || len(body) != 0 {
		t.Errorf("%v: %d %v %q", ctx.Err(), status, header, body)
	}
}

// TestEncodedSlash is a part of a name and separates nothing (RFC 3986, 2.2).
func TestEncodedSlash(t *testing.T) {
	t.Parallel()
	domain := fake{func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil }}
	s := newHandler(t, httpapi.Config{Orders: domain, Stock: domain})
	for path, want := range map[string]int{
		"/api%2Fv1%2Forders": 404, "/api%2Fv1/orders": 404, orders + "%2F" + someOrder: 404, "/api/v1/skus%2Fs1": 404,
		"/api/v1/skus/a%2Fb": 400, "/api/v1/skus/s%31": 200, orders + "/%30" + someOrder[1:]: 200,
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		status, header, body := s.do(r)
		if status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
		if status >= 400 {
			s.isProblem(t, status, header, body)
		}
	}
}
