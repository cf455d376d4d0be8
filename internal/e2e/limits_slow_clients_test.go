package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Two hundred clients send a byte per second, of their headers or of a body. They are cut off,
// and customers do not notice them.
func TestSlowClientsAreCut(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	const (
		slow    = 200
		headers = "POST /api/v1/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	)
	var cut atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for i := range slow {
		sent := headers + "X-Slow: "
		if i%2 == 0 {
			sent = headers + "Content-Length: 1000\r\n\r\n"
		}
		group.Go(func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			_, _ = io.WriteString(conn, sent) // who comes to write too late has been cut off
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = io.Copy(io.Discard, conn)
			}()
			for tick := time.NewTicker(time.Second); ; {
				select {
				case <-tick.C:
					_, _ = conn.Write([]byte(" "))
				case <-gone:
					if ctx.Err() == nil {
						cut.Add(1)
					}
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	for placed := 0; ; placed++ {
		select {
		case <-done:
			if cut.Load() != slow || placed == 0 {
				t.Errorf("%d of %d were cut off, while %d orders were placed", cut.Load(), slow, placed)
			}
			return
		case <-time.After(10 * time.Millisecond):
			r.place(t)
		}
	}
}
