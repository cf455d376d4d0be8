package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/timeout"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// openTestStore opens the database of a test, with its schema.
func openTestStore(t *testing.T, url string) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url, Instance: "test", Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// running is an instance in this process.
type running struct {
	url  string
	stop func() error // returns when it has drained
}

// start runs an instance until stop is called, at the end of the test at the latest.
func start(t *testing.T, c Config) running {
	t.Helper()
	c.Listen, c.Instance, c.Auth, c.Partition, c.OrderTTL, c.Permits = "127.0.0.1:0", "test", AuthNone, timeout.Base, time.Minute, 64
	c.KeyRetention = KeyRetention
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	out, logs, exited := new(testbedtest.Buffer), new(testbedtest.Buffer), make(chan struct{})
	var err error // of Run, once it has exited
	go func() {
		defer close(exited)
		err = Run(ctx, c, out, logs)
	}()
	in := running{stop: func() error {
		cancel()
		<-exited
		return err
	}}
	t.Cleanup(func() { _ = in.stop() }) // a test that cares has done it
	testbedtest.Eventually(t, "the instance serves", func() bool {
		_, in.url, _ = strings.Cut(strings.TrimSpace(out.String()), listening)
		select {
		case <-exited:
			t.Fatalf("%v: %s", err, logs)
		default:
		}
		return in.url != ""
	})
	return in
}

// send sends a request that creates something, with a body in JSON, and returns the response's body. Header is pairs of names and values.
func (in running) send(t *testing.T, method, path, body string, header ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, in.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: status %d, want 201: %v: %s", method, path, resp.StatusCode, err, text)
	}
	return string(text)
}

const oneUnit = `{"customer_id":"c1","items":[{"sku":"a","quantity":1}]}`

// TestStoppedInstanceLeavesNoGoroutine: an instance with all stores that need no configuration serves an order, stops without an error, and
// none of its goroutines is left.
func TestStoppedInstanceLeavesNoGoroutine(t *testing.T) {
	server := testbedtest.Redis(t)
	before := goleak.IgnoreCurrent()
	in := start(t, Config{Database: "sqlite:" + t.TempDir() + "/shop.db", Redis: server, AdminListen: "127.0.0.1:0"})
	for i, strategy := range []string{"conditional", "redis-cohort", "lua"} {
		sku := fmt.Sprint("leaks-", time.Now().UnixNano(), "-", i) // tests share the Redis
		in.send(t, http.MethodPut, "/api/v1/skus/"+sku, `{"on_hand":5,"strategy":"`+strategy+`"}`)
		in.send(t, http.MethodPost, "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+sku+`"`, 1))
	}
	if err := in.stop(); err != nil {
		t.Error(err)
	}
	if err := testbedtest.Leaks(before); err != nil {
		t.Error(err)
	}
}
