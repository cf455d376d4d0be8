package blackbox_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/shop/internal/httpapi"
)

// spoofed is sent with every bad request. None of it means anything here.
var spoofed = http.Header{
	"X-Forwarded-For": {"127.0.0.1", "'; DROP TABLE orders; --"}, "X-Real-Ip": {"127.0.0.1"}, "Forwarded": {`for="127.0.0.1"`}, "X-Forwarded-Host": {"localhost"},
	"X-Http-Method-Override": {"DELETE"}, "X-Original-Url": {"/api/v1/timers"}, "X-Rewrite-Url": {"/debug/pprof"}, "X-Customer-Id": {"c1"}, "Cookie": {"admin=1"},
	"X-Long": {strings.Repeat("x", 12<<10)}, "Accept": {"../../etc/passwd", "text/html"}, "Accept-Encoding": {"gzip;q=nan"},
}

// TestEveryOperationRefusesBadInput makes bad requests of every kind for every operation of the
// specification. None of them is answered with a failure, says more than it should, or has an effect.
func TestEveryOperationRefusesBadInput(t *testing.T) {
	t.Parallel()
	public := newShop(t)
	public.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":100000,"strategy":"conditional"}`)
	id := public.place(t)
	q, _ := newQueue(t)
	schedule(t, q, time.Now().Add(time.Hour), "a")
	admin := newAdmin(t, q)
	total := 0
	for _, s := range []*shop{public, admin} {
		for path, item := range s.spec.Paths.Map() {
			for method, op := range item.Operations() {
				if op.Tags[0] == "health" {
					continue // they ignore query and body
				}
				t.Run(op.OperationID, func(t *testing.T) {
					before := public.books(t)
					n := 0
					for name, r := range badRequestsOf(t, path, method, item, op, id) {
						n++
						maps.Copy(r.Header, spoofed)
						status, header, body := s.do(r)
						s.conforms(t, r, status, header, body)
						if status < 400 || status > 499 {
							t.Errorf("%s: %d %s", name, status, body)
						}
					}
					if after := public.books(t); after != before {
						t.Errorf("books changed from\n%s\nto\n%s", before, after)
					}
					total += n
				})
			}
		}
	}
	if total < 2000 {
		t.Errorf("only %d requests", total)
	}
	t.Logf("%d requests", total)
}

// badRequestsOf returns bad requests for an operation by what is wrong with them.
func badRequestsOf(t *testing.T, path, method string, item *openapi3.PathItem, op *openapi3.Operation, id string) map[string]*http.Request {
	t.Helper()
	all := make(map[string]*http.Request)
	good := strings.NewReplacer("{sku}", "s1", "{kind}", "k")
	at := good.Replace(strings.ReplaceAll(path, "{id}", id))
	send := func(name, method, target, body string) *http.Request {
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		u, err := url.Parse(target)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.URL, r.RequestURI = u, target
		if body != "" {
			r.Header.Set("Content-Type", jsonType)
		}
		all[name] = r
		return r
	}
	body := doors[op.OperationID].body
	if op.RequestBody != nil {
		schema := op.RequestBody.Value.Content[jsonType].Schema.Value
		mutants(t, schema, body, func(name, bad string) { send("body: "+name, method, at, bad).Header.Set("Content-Type", jsonType) })
	} else {
		for _, bad := range []string{"{}", "x", " ", "\x00", strings.Repeat("x", 1<<20)} {
			send(fmt.Sprintf("body: %.20q", bad), method, at, bad)
		}
	}
	for _, p := range slices.Concat(op.Parameters, item.Parameters) {
		name := p.Value.Name
		switch p.Value.In {
		case openapi3.ParameterInPath:
			for _, text := range append(hostile, ".", "..", "\x00", "\xff", strings.Repeat("a", 65), "a/b", "{a}", "*") {
				bad := good.Replace(strings.Replace(path, "{"+name+"}", url.PathEscape(text), 1))
				if name == "id" && !strings.Contains(path, "{kind}") || p.Value.Schema.Value.VisitJSON(text) != nil {
					send(fmt.Sprintf("path %s: %.20q", name, text), method, strings.ReplaceAll(bad, "{id}", id), body)
				}
			}
		case openapi3.ParameterInQuery:
			for _, text := range append(hostile, "", "\x00", "\xff", "-1", "0", "1.5", "1e2", "99999999999999999999", "[]", "true") {
				if name == "limit" || p.Value.Schema.Value.VisitJSON(text) != nil {
					send(fmt.Sprintf("query %s: %.20q", name, text), method, at+"?"+url.Values{name: {text}}.Encode(), body)
				}
			}
			send("query "+name+" twice", method, at+"?"+name+"=1&"+name+"=1", body)
			send("query "+name+" as a list", method, at+"?"+name+"[]=1", body)
			send("query "+name+" in upper case", method, at+"?"+strings.ToUpper(name)+"=1", body)
		case openapi3.ParameterInHeader:
			if name != "Idempotency-Key" {
				break // whatever it is, it is no error
			}
			for _, text := range append(hostile, "", `"`, "\x00", "\xff", "a,b", strings.Repeat("k", 256)) {
				if strings.Trim(text, printable) != "" || len(text) > 255 || strings.ContainsAny(text, ` ,"\`) || text == "" {
					send(fmt.Sprintf("key %.20q", text), method, at, body).Header.Set(name, text)
				}
			}
			send("two keys", method, at, body).Header[name] = []string{"a", "a"}
		}
	}
	for _, query := range []string{"unknown=1", "%zz", "a;b", "' OR '1'='1", "debug=true", "_method=DELETE"} {
		send("query "+query, method, at+"?"+strings.ReplaceAll(query, " ", "%20"), body)
	}
	for _, other := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "BREW"} {
		if item.GetOperation(strings.ToUpper(other)) == nil || other == "get" {
			send("method "+other, other, at, body)
		}
	}
	for _, other := range []string{at + "/", at + "//", "/" + at, at + "/..", at + "/%2e%2e", at + ";a=b", at + "%00", at + "%2f", strings.ToUpper(at), "/api/v1/.." + at} {
		send("path "+other, method, other, body)
	}
	return all
}

// TestBadRequestsOnTheWire are those that no client library sends.
func TestBadRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`)
	before := s.books(t)
	server := httptest.NewUnstartedServer(s)
	server.Config = httpapi.NewServer(s, slog.New(slog.DiscardHandler))
	server.Start()
	t.Cleanup(server.Close)
	head := "POST " + orders + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
	for name, raw := range map[string]string{
		"no host":               "GET /api/v1/skus HTTP/1.1\r\n\r\n",
		"two hosts":             "GET /api/v1/skus HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"host with a path":      "GET /api/v1/skus HTTP/1.1\r\nHost: a/../b\r\n\r\n",
		"no HTTP":               "hello\r\n\r\n",
		"other version":         "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
		"method with spaces":    "GE T / HTTP/1.1\r\nHost: x\r\n\r\n",
		"path with a space":     "GET /api v1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"path with control":     "GET /api\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
		"star":                  "GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"header with a NUL":     head + "Idempotency-Key: a\x00b\r\nContent-Length: " + fmt.Sprint(len(basket)) + "\r\n\r\n" + basket,
		"header without colon":  head + "Idempotency-Key\r\nContent-Length: " + fmt.Sprint(len(basket)) + "\r\n\r\n" + basket,
		"folded header":         head + "X: a\r\n b: c\r\nContent-Length: x\r\n\r\n" + basket,
		"space before colon":    head + "Content-Length : " + fmt.Sprint(len(basket)) + "\r\n\r\n" + basket,
		"two lengths":           head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + basket,
		"negative length":       head + "Content-Length: -1\r\n\r\n" + basket,
		"huge length":           head + "Content-Length: 99999999999999999999\r\n\r\n" + basket,
		"length in hex":         head + "Content-Length: 0x10\r\n\r\n" + basket,
		"length that lies":      head + "Content-Length: " + fmt.Sprint(len(basket)-1) + "\r\n\r\n" + basket,
		"chunks that lie":       head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + basket + "\r\n0\r\n\r\n",
		"chunks of a bad size":  head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + basket + "\r\n0\r\n\r\n",
		"large header":          head + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"many headers":          head + strings.Repeat("X: y\r\n", 20_000) + "\r\n",
		"large length declared": head + "Content-Length: 1000000000\r\n\r\n{",
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		go func() { _, _ = io.WriteString(conn, raw) }() // the server may hang up half-way
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			if !strings.Contains(name, "header") { // it is too much to be read to the end
				t.Errorf("%s: %v", name, err)
			}
			_ = conn.Close()
			continue
		}
		if answer.StatusCode < 400 || answer.StatusCode > 499 && answer.StatusCode != http.StatusHTTPVersionNotSupported {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
		_ = answer.Body.Close()
		_ = conn.Close()
	}
	if after := s.books(t); after != before {
		t.Errorf("books changed from\n%s\nto\n%s", before, after)
	}
}
