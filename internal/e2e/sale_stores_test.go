package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

const oneUnit = `{"customer_id":"c1","items":[{"sku":"a","quantity":1}]}`

// place orders one unit of the SKU a and returns the order's id.
func (r *running) place(t *testing.T) string {
	t.Helper()
	a := served(t.Context(), http.DefaultClient, r.url, "a")
	if a.status != http.StatusCreated {
		t.Fatal(a)
	}
	return orderID(t, a.body)
}

func TestOrderOnRealStores(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	r := start(t, "--database", database, "--redis", testbedtest.Redis(t))
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":3,"strategy":"redis"}`)
	paid, cancelled := r.place(t), r.place(t)
	r.want(t, http.StatusOK, "POST", "/api/v1/orders/"+paid+"/pay", `{"payment_id":"p1"}`)
	r.want(t, http.StatusOK, "POST", "/api/v1/orders/"+cancelled+"/cancel", "")
	r.want(t, http.StatusConflict, "POST", "/api/v1/orders/"+cancelled+"/pay", `{"payment_id":"p1"}`)
	r.place(t)
	r.place(t)
	r.want(t, http.StatusConflict, "POST", "/api/v1/orders", oneUnit)
	var books struct{ OK bool }
	if err := json.Unmarshal([]byte(r.want(t, http.StatusOK, "GET", "/api/v1/audit?sku=a", "")), &books); err != nil || !books.OK {
		t.Errorf("audit: ok %v, %v", books.OK, err)
	}
	if code, out, stderr := call(t, noEnv, "audit", "--database", database); code != 0 || !strings.Contains(out, "ok") {
		t.Errorf("shop audit: exit code %d: %s%s", code, out, stderr)
	}
	metrics(t, r, `shop_orders_total{`, `shop_lock_wait_seconds_count{`, `shop_oversold_units{`)
	r.want(t, http.StatusNotFound, "GET", "/metrics", "")
}

func TestAuditNamesTheBrokenSKU(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	r := start(t, "--database", database)
	for try := range 20 { // a race need not show at the first try
		sku := fmt.Sprint("a", try)
		r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":50,"strategy":"naive"}`)
		var group sync.WaitGroup
		for range 200 {
			group.Go(func() { r.send(t, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+sku+`"`, 1)) })
		}
		group.Wait()
		switch code, out, _ := call(t, noEnv, "audit", "--database", database); {
		case code == 1 && strings.Contains(out, sku+": oversold: "):
			return
		case code != 0 && !strings.Contains(out, "BROKEN"): // on a slow machine fewer orders than units may be placed

			t.Fatalf("exit code %d:\n%s", code, out)
		}
	}
	t.Error("naive never oversold")
}

func TestWithoutRedisItsStrategiesAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	for _, s := range []string{"redis", "redis-unfenced"} {
		answer := r.want(t, http.StatusUnprocessableEntity, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"`+s+`"}`)
		if !strings.Contains(answer, "strategy-unavailable") {
			t.Error(answer)
		}
	}
	r.want(t, http.StatusNotFound, "GET", "/api/v1/skus/a", "")
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"conditional"}`)
}

// A lock service that lost its data and whose clock is behind issues fences that the
// row refuses, until it is told what the row has accepted.
func TestFenceAheadOfTheLockService(t *testing.T) {
	t.Parallel()
	for strategy, flags := range map[string]func() []string{
		"redis": func() []string { return []string{"--redis", testbedtest.Redis(t)} },
		"redlock": func() []string {
			var urls []string
			for range 3 {
				urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
			}
			return []string{"--redlock", strings.Join(urls, ",")}
		},
		"sql": func() []string { return nil },
	} {
		t.Run(strategy, func(t *testing.T) {
			database := sqliteURL(t)
			r := start(t, append(flags(), "--database", database)...)
			sku := order.NewID() // tests share the Redis
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":5,"strategy":"`+strategy+`"}`)
			store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			ahead := dlock.Fence{Token: uint64(time.Now().Add(time.Hour).UnixMicro()), Owner: "before the data was lost"}
			request := &order.Request{TTL: time.Hour, Order: order.Order{
				ID: order.NewID(), CustomerID: "c1", Items: []order.Item{{SKU: sku, Quantity: 1}},
			}}
			claims := []stock.Claim{{SKU: sku, Write: stock.Fenced, Fence: ahead}}
			if err := store.Commit(t.Context(), claims, []*order.Request{request}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+sku+`"`, 1))
			}
			if code, out, _ := call(t, noEnv, "audit", "--database", database); code != 0 {
				t.Error(out)
			}
		})
	}
}

// A Redis that is stopped, or gone, makes orders that need it fail in time and
// without effect; the others go on.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	database := sqliteURL(t)
	r := start(t, "--database", database, "--redis", server.URL())
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":5,"strategy":"redis"}`)
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/b", `{"on_hand":5,"strategy":"conditional"}`)
	r.place(t)
	refused := func(fault string) {
		t.Helper()
		a := permitted(func() answer { return purchase(t.Context(), http.DefaultClient, r.url, "a") })
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "store-unavailable") && !strings.Contains(a.body, "busy") || a.took > 30*time.Second {
			t.Errorf("%s: %v", fault, a)
		}
		r.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"b"`, 1))
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	refused("stopped")
	if err := errors.Join(server.Resume(), server.Kill()); err != nil {
		t.Fatal(err)
	}
	refused("gone")
	if got := r.want(t, http.StatusOK, "GET", "/api/v1/skus/a", ""); !strings.Contains(got, `"reserved":1,`) {
		t.Errorf("the refused orders left something behind: %s", got)
	}
}

// While an instance drains, a client that obeys readiness and Connection: close
// loses nothing.
func TestDrainLosesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	var (
		group    sync.WaitGroup
		answered atomic.Int64
		draining atomic.Bool
		stopped  = make(chan struct{})
	)
	for range 16 {
		group.Go(func() {
			for !draining.Load() {
				if status, answer := r.send(t, "POST", "/api/v1/orders", oneUnit); status != http.StatusCreated {
					t.Errorf("status %d: %s", status, answer)
				}
				if answered.Add(1) == 200 {
					close(stopped)
				}
			}
		})
	}
	<-stopped
	r.stop()
	for !draining.Load() { // as a balancer would
		status, _ := r.send(t, "GET", "/readyz", "")
		draining.Store(status == http.StatusServiceUnavailable)
	}
	r.want(t, http.StatusOK, "GET", "/livez", "")
	group.Wait()
	select {
	case <-r.exited:
	case <-time.After(2 * time.Minute):
		t.Error("the instance does not stop")
	}
}

// One POST is one trace, from the request to the lock and the statements, and
// reaches an OTLP receiver when one is configured. The expiry of the order has a trace
// of its own, which links to it.
func TestOnePostIsOneTrace(t *testing.T) {
	var (
		mu       sync.Mutex
		requests []*collector.ExportTraceServiceRequest
	)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || !strings.HasSuffix(req.URL.Path, "/v1/traces") {
			return
		}
		m := new(collector.ExportTraceServiceRequest)
		if err := proto.Unmarshal(body, m); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, m)
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)

	r := start(t, "--database", sqliteURL(t), "--redis", testbedtest.Redis(t), "--order-ttl", "1s")
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"redis"}`)
	trace, tries := "", 0 // of the request that was not refused for now
	still := watchStillness(t)
	a := insist(func() answer {
		tries++
		trace = fmt.Sprintf("0af7651916cd43dd8448eb211c8031%02x", tries%256)
		return purchase(t.Context(), http.DefaultClient, r.url, "a", "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	})
	if a.status != http.StatusCreated {
		t.Fatal(a)
	}
	r.eventually(t)
	r.stop() // flushes the spans
	r.stopped(t)
	mu.Lock()
	defer mu.Unlock()
	seen := make(map[string]int)
	for _, m := range requests {
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					for _, l := range s.Links {
						if hex.EncodeToString(l.TraceId) == trace {
							seen["link from "+s.Name]++
						}
					}
					if hex.EncodeToString(s.TraceId) == trace {
						seen[s.Name]++
					}
				}
			}
		}
	}
	for _, name := range []string{"POST /api/v1/orders", "order.place", "stock.reserve", "lock.acquire", "lock.hold", "link from timers order.expire"} {
		if again := seen[name] > 1 && still.stood() > 0; seen[name] != 1 && !again { // under another lease
			t.Errorf("%d spans %q in the trace, want 1; it has %v", seen[name], name, seen)
		}
	}
}
