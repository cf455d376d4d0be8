package blackbox_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestControlRoomOfAnInstanceBreaksNothing: the operations that start sales and break instances are in the process that owns the
// instances. An instance serves the page, whose policy lets it load scripts and styles of its own origin only.
func TestControlRoomOfAnInstanceBreaksNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	for _, path := range []string{"/", "/room/index.html", "/room/main.js", "/room/style.css", "/room/vendor/uplot.js"} {
		status, header, _ := s.do(httptest.NewRequest(http.MethodGet, path, nil))
		if got := header.Get("Content-Security-Policy"); status != http.StatusOK || got != policy {
			t.Errorf("%s: %d, policy %q, want %q", path, status, got, policy)
		}
	}
	for _, path := range []string{
		"/lab/state", "/lab/sale", "/lab/sale/stop", "/lab/late", "/lab/unpaid", "/lab/labs", "/lab/labs/lost-update", "/lab/orders/a/trace",
		"/lab/actions/kill?instance=i1", "/lab/actions/redis-wipe", "/lab/actions/database-pause",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			s.must(t, http.StatusNotFound, method, path, "")
		}
	}
}
