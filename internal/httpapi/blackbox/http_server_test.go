package blackbox_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/httpapi"
)

// TestHTTPServerRefusesAsDocumented: the requests of this table of docs/reference/problems.md reach no handler. The
// responses of net/http are fixed texts, and repeat nothing of the request.
func TestHTTPServerRefusesAsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(page), "| request | status |\n|---|--:|\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpapi.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s reached the handler", r.RequestURI)
	}), slog.New(slog.DiscardHandler))
	server.Start()
	t.Cleanup(server.Close)
	const line, host = "GET /marker HTTP/1.1\r\n", "Host: marker\r\n"
	for row := range strings.Lines(rows + "\n") {
		name, status, _ := strings.Cut(strings.Trim(row, "| \n"), " | ")
		raw, known := map[string]string{
			"a path with a `%` that no two hexadecimal digits follow": "GET /marker/100% HTTP/1.1\r\n" + host + "\r\n",
			"any other malformed HTTP, such as two hosts":             line + host + host + "\r\n",
			"an `Expect` other than `100-continue`":                   line + host + "Expect: marker\r\n\r\n",
			"headers of more than 20 KiB":                             line + host + "X: " + strings.Repeat("marker", 20<<10/6) + "\r\n\r\n",
			"a `Transfer-Encoding` other than `chunked`":              line + host + "Transfer-Encoding: marker\r\n\r\n",
			"a version other than HTTP/1.0 and HTTP/1.1":              "GET /marker HTTP/3.0\r\n" + host + "\r\n",
		}[name]
		if !known {
			t.Errorf("the page has %q, which has no test", name)
			continue
		}
		got, header, body := exchange(t, server.Listener.Addr().String(), raw)
		if fmt.Sprint(got) != status {
			t.Errorf("%s: status %d, want %s", name, got, status)
		}
		if kind := header.Get("Content-Type"); len(body) > 0 && kind != "text/plain; charset=utf-8" {
			t.Errorf("%s: Content-Type %q", name, kind)
		}
		if strings.Contains(body, "marker") || header.Get("X-Instance-Id") != "" {
			t.Errorf("%s: %v %q", name, header, body)
		}
	}
	if n := strings.Count(rows, "|\n") + 1; n != 6 {
		t.Errorf("the page has %d rows, want 6", n)
	}
}

// exchange sends raw on a connection of its own, and returns the response, after which the server closes the connection.
func exchange(t *testing.T, address, raw string) (status int, header http.Header, body string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !answer.Close {
		t.Errorf("%.80q: the connection stays open", raw)
	}
	return answer.StatusCode, answer.Header, string(text)
}
