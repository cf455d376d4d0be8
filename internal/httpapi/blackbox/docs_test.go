package blackbox_test

import (
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
)

// page returns an answer that is a page of the documentation.
func (s *shop) page(tb testing.TB, path string) string {
	tb.Helper()
	status, header, body := s.do(httptest.NewRequest(http.MethodGet, path, nil))
	policy := header.Get("Content-Security-Policy")
	if status != http.StatusOK || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe") {
		tb.Errorf("%s: %d %v", path, status, header)
	}
	return string(body)
}

// TestEveryProblemHasItsPage at the path that is its type, with an example that the specification
// allows. There are no other ones.
func TestEveryProblemHasItsPage(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{})
	index := s.page(t, "/docs/problems")
	types := slices.Sorted(maps.Keys(s.problems()))
	if len(types) < 20 {
		t.Errorf("the specification has the types %q only", types)
	}
	types = append(types, methodNotAllowed)
	for _, path := range types {
		page := s.page(t, path)
		m := regexp.MustCompile(`(?s)<h1>(.+)</h1>.*<p>(\d\d\d) .*means</h2>\s*<p>(.{40,})</p>.*do</h2>\s*<p>(.{20,})</p>.*<pre>(.*)</pre>`).FindStringSubmatch(page)
		if m == nil {
			t.Errorf("%s: %s", path, page)
			continue
		}
		var example map[string]any
		if err := json.Unmarshal([]byte(html.UnescapeString(m[5])), &example); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if schema, ok := s.problems()[path]; ok {
			if err := schema.VisitJSON(example); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if example["type"] != path || example["title"] != m[1] || example["detail"] == "" {
			t.Errorf("%s: example %v", path, example)
		}
		if !strings.Contains(index, `<a href="`+path+`">`) {
			t.Errorf("%s is not in the index", path)
		}
	}
	if got := strings.Count(index, `<a href="/docs/problems/`); got != len(types) {
		t.Errorf("%d pages for %d types", got, len(types))
	}
	for _, path := range []string{"/docs/problems/nothing", "/docs/problems/", "/docs/nothing.js", "/docs/../openapi.yaml", "/docs/docs.go", "/docs/"} {
		s.must(t, 404, http.MethodGet, path, "")
	}
	s.must(t, 405, http.MethodPost, "/docs", "")
}

// TestPageOfFormerProblemTypeRedirects permanently, to a page that exists and leaves out the former name.
func TestPageOfFormerProblemTypeRedirects(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{})
	for former, current := range map[string]string{
		"/docs/problems/busy": "/docs/problems/lock-timeout", "/docs/problems/saturated": "/docs/problems/concurrency-limit",
		"/docs/problems/settings-fixed": "/docs/problems/config-read-only",
	} {
		status, header, _ := s.do(httptest.NewRequest(http.MethodGet, former, nil))
		if status != http.StatusPermanentRedirect || header.Get("Location") != current {
			t.Errorf("%s: %d, Location %q, want %s", former, status, header.Get("Location"), current)
		}
		if page := s.page(t, current); strings.Contains(page, former) {
			t.Errorf("%s names %s", current, former)
		}
	}
}

// TestSwagger has everything that its page asks for here, and nothing within the page that its
// policy forbids.
func TestSwagger(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{})
	pages := []string{s.page(t, "/docs"), s.page(t, "/docs/problems"), s.page(t, "/docs/problems/lock-timeout")}
	for _, page := range pages {
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			status, header, body := s.do(httptest.NewRequest(http.MethodGet, m[1], nil))
			if status != http.StatusOK || len(body) < 100 || !strings.HasPrefix(m[1], "/") {
				t.Errorf("%s: %d, %d bytes", m[1], status, len(body))
			}
			kind := header.Get("Content-Type")
			if strings.HasSuffix(m[1], ".js") && !strings.Contains(kind, "javascript") || strings.HasSuffix(m[1], ".css") && !strings.Contains(kind, "css") {
				t.Errorf("%s is %s", m[1], kind)
			}
		}
		if m := regexp.MustCompile(`<style|<script>|\son\w+=|style=|javascript:|https?://`).FindString(page); m != "" {
			t.Errorf("a page contains %q", m)
		}
	}
	script := s.page(t, "/docs/init.js")
	if !strings.Contains(script, "/api/v1/openapi.yaml") {
		t.Errorf("script: %s", script)
	}
	// The hook by which the page does not offer to try out what cannot work there. It is no documented one.
	_, _, bundle := s.do(httptest.NewRequest(http.MethodGet, "/docs/swagger-ui-bundle.js", nil))
	const hook = "specSelectors.allowTryItOutFor("
	if !strings.Contains(string(bundle), hook) || !strings.Contains(script, "allowTryItOutFor:") {
		t.Errorf("Swagger UI does not ask %s), or the page does not answer", hook)
	}
}

// TestOnlyDocsMayLoadResources that may load anything.
func TestOnlyDocsMayLoadResources(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, path := range []string{"/livez", "/api/v1/skus", "/nothing", "/api/v1/openapi.yaml", "/docs/nothing"} {
		_, header, _ := s.do(httptest.NewRequest(http.MethodGet, path, nil))
		if got := header.Get("Content-Security-Policy"); got != "default-src 'none'; frame-ancestors 'none'" {
			t.Errorf("%s: %q", path, got)
		}
	}
}
