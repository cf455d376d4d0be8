package blackbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/memlog"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// station is an instance that has nothing but events, on a real socket.
type station struct {
	*events.Publisher

	feed *events.Feed
	shop *shop
	url  string

	unstocked atomic.Bool // there are no levels to read
	asked     sync.Map    // SKUs whose levels were to be read
}

func newStation(t *testing.T, id httpapi.Identity, c events.FeedConfig) *station {
	t.Helper()
	return newStationWith(t, id, c, heartbeat, time.Minute)
}

func newStationWith(t *testing.T, id httpapi.Identity, c events.FeedConfig, heartbeat, write time.Duration) *station {
	t.Helper()
	log := memlog.New()
	feed, err := events.NewFeed(log, c)
	if err != nil {
		t.Fatal(err)
	}
	s := &station{feed: feed}
	s.Publisher = events.NewPublisher(log, events.PublisherConfig{Instance: "i1", Levels: func(_ context.Context, skus []string) (levels []events.Stock, _ error) {
		none := s.unstocked.Load()
		for _, sku := range skus {
			if s.asked.Store(sku, true); !none {
				levels = append(levels, events.Stock{SKU: sku, Version: 1})
			}
		}
		return levels, nil
	}})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{s.feed.Run, s.Run} {
		group.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	// The limits of requests are far below what a stream takes here.
	s.shop = newHandler(t, httpapi.Config{Events: s.feed, Identity: id, Heartbeat: heartbeat, RequestTimeout: heartbeat})
	server := httpapi.NewServer(s.shop, slog.New(slog.DiscardHandler))
	server.ReadTimeout, server.ReadHeaderTimeout, server.WriteTimeout = write, write, write
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + listener.Addr().String()
	group.Go(func() {
		if err := server.Serve(small{listener}); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.feed.Close()
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		stop()
		group.Wait()
	})
	testbedtest.Eventually(t, "the feed reads", func() bool { return s.feed.Stats().Live })
	return s
}

// small is a listener whose connections hold little that is not read.
type small struct{ net.Listener }

func (s small) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		err = tcp.SetWriteBuffer(4 << 10)
	}
	return c, err
}

// client has connections that hold little that is not read, either.
func streamClient(t *testing.T) *http.Client {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failed := c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) }); failed != nil {
			return failed
		}
		return err
	}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, ReadBufferSize: 1 << 10, ResponseHeaderTimeout: time.Minute}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// opened is a stream that was opened.
type opened struct {
	header http.Header
	body   io.ReadCloser
}

// open opens a stream, which ends with the test.
func (s *station) open(t *testing.T, client *http.Client, key, query, lastID string) opened {
	t.Helper()
	var answer *http.Response
	for end := time.Now().Add(time.Minute); answer == nil; {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/events"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		if lastID != "" {
			r.Header.Set("Last-Event-ID", lastID)
		}
		// Some servers here have so little time for a request that a slow machine has none.
		if answer, err = client.Do(r); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return opened{answer.Header, answer.Body}
}

// upTo reads a stream up to the order with the id, and returns what came before, without heartbeats.
func upTo(t *testing.T, body io.Reader, last string) (all []events.Message) {
	t.Helper()
	for m, err := range events.Messages(body) {
		if err != nil {
			t.Errorf("the stream ended before %s: %v", last, err)
			return all
		}
		if m.Data != "" {
			all = append(all, m)
		}
		if strings.Contains(m.Data, `"id":"`+last+`"`) {
			return all
		}
	}
	return all
}

// kinds returns what messages are about: orders by their ids.
func kinds(t *testing.T, messages []events.Message) (all []string) {
	t.Helper()
	for _, m := range messages {
		var e events.Event
		if err := json.Unmarshal([]byte(m.Data), &e); err != nil {
			t.Errorf("%q: %v", m.Data, err)
		}
		if e.Order != nil {
			m.Kind = e.Order.ID
		}
		all = append(all, m.Kind)
	}
	return all
}

func liveOrder(id, customer string, skus ...string) events.Order {
	o := events.Order{ID: id, CustomerID: customer, Status: "PENDING", ExpiresAt: time.Now().UTC(), Items: []events.Item{}}
	for _, sku := range skus {
		o.Items = append(o.Items, events.Item{SKU: sku, Quantity: 1})
	}
	return o
}
