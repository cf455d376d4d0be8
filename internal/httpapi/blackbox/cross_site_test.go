package blackbox_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
)

// TestPagesOfOtherSitesAreRefused: a browser sends a request that needs no key for any page that somebody has open.
// It shows the response only to pages of the same host, so the service refuses foreign host names.
func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	domain := fake{func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil }}
	local := newHandler(t, httpapi.Config{Orders: domain, Stock: domain, LocalOnly: true})
	public := newHandler(t, httpapi.Config{Orders: domain, Stock: domain})
	cancel, read := orders+"/"+someOrder+"/cancel", orders+"/"+someOrder
	for _, c := range []struct {
		method, path, host string
		header             http.Header
		local, public      int
	}{
		{"POST", cancel, "127.0.0.1:8080", nil, 200, 200},
		{"POST", cancel, "localhost:8080", http.Header{"Origin": {"http://localhost:8080"}}, 200, 200},
		{"POST", cancel, "[::1]:8080", http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200, 200},
		{"GET", read, "127.0.0.1", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 200, 200}, // a link; the other page does not see it
		{"POST", cancel, "127.0.0.1:8080", http.Header{"Origin": {"http://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}, 403, 403},
		{"POST", cancel, "127.0.0.1:8080", http.Header{"Origin": {"http://evil.example"}}, 403, 403},
		{"POST", cancel, "127.0.0.1:8080", http.Header{"Sec-Fetch-Site": {"same-site"}}, 403, 403}, // another port of this machine
		{"POST", cancel, "127.0.0.1:8080", http.Header{"Origin": {"null"}}, 403, 403},
		{"PUT", "/api/v1/skus/s1", "127.0.0.1:8080", http.Header{"Origin": {"http://evil.example"}}, 403, 403},
		{"POST", cancel, "evil.example:8080", http.Header{"Origin": {"http://evil.example:8080"}}, 403, 200},
		{"GET", read, "evil.example:8080", nil, 403, 200},
		{"GET", "/docs", "evil.example:8080", nil, 403, 200},
		{"GET", read, "[::1]", nil, 200, 200},
		{"GET", read, "127.0.0.1.evil.example", nil, 403, 200},
		{"GET", read, "", nil, 403, 200},
		{"GET", "/livez", "evil.example", nil, 200, 200}, // balancers ask by any name, or none
		{"GET", "/readyz", "", nil, 200, 200},
	} {
		for s, want := range map[*shop]int{local: c.local, public: c.public} {
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Host = c.host
			maps.Copy(r.Header, c.header)
			status, header, body := s.do(r)
			if status != want {
				t.Errorf("%s %s to %q with %v, local %v: %d %s, want %d", c.method, c.path, c.host, c.header, s == local, status, body, want)
			}
			if status >= 400 {
				s.conforms(t, r, status, header, body)
			}
		}
	}
}
