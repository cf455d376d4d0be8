package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// oneConn is a listener that has one connection.
type oneConn struct {
	conns  chan net.Conn
	closed context.CancelFunc
	until  context.Context //nolint:containedctx // Done when it is closed.
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.until.Done():
		return nil, net.ErrClosed
	}
}

func (l oneConn) Close() error { l.closed(); return nil }

func (oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A client that does not read its response is cut off, and its request ends. The instance has not failed.
func TestClientThatDoesNotReadIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, served := net.Pipe()
		defer client.Close()
		until, closed := context.WithCancel(t.Context())
		listener := oneConn{make(chan net.Conn, 1), closed, until}
		listener.conns <- served
		var unwritten error
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, unwritten = w.Write(make([]byte, 1<<20))
		})
		ctx, stop := context.WithCancel(t.Context())
		var log bytes.Buffer
		ended := make(chan error, 1)
		go func() {
			ended <- serveHTTP(ctx, &http.Server{Handler: handler}, listener, new(atomic.Bool), slog.New(slog.NewTextHandler(&log, nil)))
		}()
		if _, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: shop\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serveHTTP = %v", err)
		}
		if !errors.Is(unwritten, io.ErrClosedPipe) || !strings.Contains(log.String(), "cut off") {
			t.Errorf("the response: %v; log %s", unwritten, &log)
		}
	})
}
