package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The control room of an instance shows, in Chromium, the levels, leases, instances and orders that all instances report.
func TestControlRoom(t *testing.T) {
	t.Parallel()
	flags := []string{"--database", testbedtest.Database(t), "--redis", ownRedis(t)}
	shops := []*instance{spawn(t, append(flags, "--instance", "shop-1")...), spawn(t, append(flags, "--instance", "shop-2")...)}
	shops[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/ticket", `{"on_hand":1000,"strategy":"redis"}`)
	page := browser(t, shops[0].url)
	text := func(selector string) string {
		return evaluate[string](page, t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
	}
	testbedtest.Eventually(t, "the page is connected", func() bool { return text("#connection") == "live" })

	const each = 15
	var buyers sync.WaitGroup
	for i, shop := range shops {
		buyers.Go(func() {
			for n := range each {
				shop.want(t, http.StatusCreated, "POST", "/api/v1/orders", fmt.Sprintf(`{"customer_id":"c%d-%d","items":[{"sku":"ticket","quantity":1}]}`, i, n))
			}
		})
	}
	buyers.Wait()
	want := fmt.Sprintf("ticket\tredis\t1000\t%d\t%d", 2*each, 1000-2*each)
	show(page, t, "stock")
	testbedtest.Eventually(t, "the page shows the level "+want, func() bool { return strings.Contains(text("#stock"), want) })
	show(page, t, "orders")
	for i, shop := range shops { // the page lists the latest leases only
		shop.want(t, http.StatusCreated, "POST", "/api/v1/orders", fmt.Sprintf(`{"customer_id":"last-%d","items":[{"sku":"ticket","quantity":1}]}`, i))
		lease := regexp.MustCompile(fmt.Sprintf(`shop-%d\t#\d+\t\d+ ms`, i+1))
		testbedtest.Eventually(t, "the page shows a lease of "+shop.url+" that has ended", func() bool {
			leases := evaluate[string](page, t, "document.querySelector('details').open = true, document.querySelector('details').innerText")
			return lease.MatchString(leases)
		})
	}
	for _, name := range []string{"shop-1", "shop-2"} {
		testbedtest.Eventually(t, "the page shows "+name, func() bool { return strings.Contains(text("#instances"), name) })
	}
	testbedtest.Eventually(t, "an order can be chosen", func() bool {
		return evaluate[bool](page, t, "((b) => b !== null && (b.click() ?? true))(document.querySelector('#orders tbody button.link'))")
	})
	testbedtest.Eventually(t, "the page says that there is no trace", func() bool { return strings.Contains(text(".detail"), "This instance records no traces.") })
	accessible(page, t, "the page of an instance")
	const changes = "[...document.querySelectorAll('[data-action], form, #machines, #labs, #orders button:not(.link)')].map((e) => e.outerHTML).join()"
	if orders := text("#orders"); !strings.Contains(orders, "PENDING") || strings.Contains(orders, "actions") || evaluate[string](page, t, changes) != "" {
		t.Errorf("the page of an instance has %s, and the orders %s", evaluate[string](page, t, changes), orders)
	}
	shops[0].want(t, http.StatusNotFound, "POST", "/lab/actions/kill?instance=shop-1", "")
}

// The page of an instance that demands keys asks for one. It refuses a wrong key, and shows the stock with a right one.
func TestControlRoomAsksForAKey(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	header, key := newKey(t, database, "--admin")
	shop := spawn(t, "--database", database, "--auth", "keys")
	if a := ask(t.Context(), http.DefaultClient, "PUT", shop.url+"/api/v1/skus/ticket", `{"on_hand":7,"strategy":"conditional"}`, header...); a.status != http.StatusCreated {
		t.Fatal(a)
	}
	page := browser(t, shop.url, "401 (Unauthorized)")
	wait := func(what, expression string) {
		t.Helper()
		testbedtest.Eventually(t, what, func() bool { return evaluate[bool](page, t, expression) })
	}
	const refused = "document.querySelector('form.key')?.innerText.includes('The API key is missing or invalid.') === true && document.querySelector('#stock') === null"
	open := func(key string) {
		evaluate[bool](page, t, fmt.Sprintf("((form) => { form.key.value = %q; form.requestSubmit(); return true; })(document.querySelector('form.key'))", key))
	}
	wait("the page asks for a key", refused)
	show(page, t, "stock")
	accessible(page, t, "the form for a key")
	evaluate[bool](page, t, `(() => {
		const real = window.fetch;
		window.sent = [];
		window.SharedWorker = undefined; // so that the page itself reads
		window.fetch = (path, options) => real(path, options).finally(() => sent.push(options?.headers?.Authorization));
		return true;
	})()`)
	open("wrong")
	wait("the wrong key was sent", "sent.includes('Bearer wrong')")
	wait("the page refuses the wrong key", refused)
	open(key)
	wait("the page shows the stock", "document.querySelector('#stock')?.innerText.includes('ticket\\tconditional\\t7\\t0\\t7') === true && document.querySelector('form.key') === null")
}

// The load of the test: an order for each SKU at each of three instances per period. Instances publish the leases of a
// SKU at most every 250 ms, so that is about 100 events about locks per second.
const (
	growthSKUs   = 9
	growthShown  = 200 // SKUs that fill all that the page keeps of the stock
	growthPeriod = 260 * time.Millisecond
	// growthWarm is how many of these events fill all that the page keeps: it has the latest 2000 leases.
	growthWarm = 1500
)

// These bound how much more the page has at the end than after the warm-up.
const (
	maxHeapGrowth     = 1 << 20 // bytes; a page that keeps all events grows by this in a few seconds
	maxNodeGrowth     = 400     // the rows of tables come and go
	maxListenerGrowth = 40      // of buttons in rows
)

// A page that is open under load does not grow: for ten seconds, or for five minutes at full size: an event of which 35 bytes are kept is noticed.
func TestControlRoomDoesNotGrow(t *testing.T) {
	t.Parallel()
	url := room(t, product(t), "--database", testbedtest.Database(t), "--redis", ownRedis(t))
	page := browser(t, url, "409 (Conflict)") // a sale that is under way, which the page does not show yet
	testbedtest.Eventually(t, "a sale can be started", func() bool {
		return evaluate[bool](page, t, "document.querySelector('form#sale button:not(:disabled)') !== null")
	})
	events := buyAtAllInstances(t, strings.Split(url, "/#")[0])
	sell := func() { // a small sale after the other, so that charts are drawn and SKUs come
		evaluate[bool](page, t, `(() => {
			const form = document.querySelector('form#sale');
			if (!form || form.querySelector('button:not([type])').disabled) return false;
			form.units.value = 200; form.attempts.value = 600; form.buyers.value = 2;
			form.requestSubmit();
			return true;
		})()`)
	}
	until := func(n int64) {
		t.Helper()
		for end := time.Now().Add(5*time.Minute + time.Duration(n)*20*time.Millisecond); events.Load() < n; {
			if time.Now().After(end) {
				t.Fatalf("%d of %d events about locks", events.Load(), n)
			}
			sell()
			<-time.After(time.Second)
		}
	}

	until(growthWarm)
	before, began := footprintOf(page, t), time.Now()
	until(growthWarm + int64(testbedtest.Size(1_000, 30_000)))
	after := footprintOf(page, t)
	took := time.Since(began)
	t.Logf("%v, %.0f events about locks per second: %+v, then %+v", took.Round(time.Second), float64(events.Load()-growthWarm)/took.Seconds(), before, after)
	if grown := after.Heap - before.Heap; grown > maxHeapGrowth {
		t.Errorf("the heap has grown by %.0f bytes, from %.0f", grown, before.Heap)
	}
	if grown := after.Nodes - before.Nodes; grown > maxNodeGrowth {
		t.Errorf("the document has grown by %.0f nodes, from %.0f", grown, before.Nodes)
	}
	if grown := after.Listeners - before.Listeners; grown > maxListenerGrowth {
		t.Errorf("the page has %.0f more event listeners than %.0f", grown, before.Listeners)
	}
}

// buyAtAllInstances orders a unit of each of several SKUs at each instance, again and again until the test ends. It
// returns how many events about locks the room has sent since.
func buyAtAllInstances(t *testing.T, url string) *atomic.Int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var tasks sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: growthSKUs}}
	t.Cleanup(func() { cancel(); tasks.Wait(); client.CloseIdleConnections() })
	send := func(method, url, body string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		return client.Do(req)
	}
	resp, err := send("GET", url+"/api/v1/cluster", "")
	must(t, err)
	defer resp.Body.Close()
	var cluster struct {
		Members []struct{ Name, Address string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&cluster); err != nil || len(cluster.Members) != 3 {
		t.Fatalf("%d instances, %v, want 3", len(cluster.Members), err)
	}
	for n := range growthShown {
		sku := fmt.Sprintf("load-%d", n)
		made, err := send("PUT", url+"/api/v1/skus/"+sku, `{"on_hand":1000000,"strategy":"redis"}`)
		if err != nil {
			t.Fatal(err)
		}
		made.Body.Close()
		if n >= growthSKUs {
			continue
		}
		for _, m := range cluster.Members {
			tasks.Go(func() {
				tick := time.NewTicker(growthPeriod)
				defer tick.Stop()
				for i := 0; ctx.Err() == nil; i++ {
					body := fmt.Sprintf(`{"customer_id":"%s-%s-%d","items":[{"sku":%q,"quantity":1}]}`, sku, m.Name, i, sku)
					if sold, err := send("POST", "http://"+m.Address+"/api/v1/orders", body); err == nil {
						io.Copy(io.Discard, sold.Body) // only for the connection to be used again
						sold.Body.Close()
					}
					select {
					case <-tick.C:
					case <-ctx.Done():
					}
				}
			})
		}
	}
	stream, err := send("GET", url+"/api/v1/events?types=lock", "")
	if err != nil {
		t.Fatal(err)
	}
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("the events: status %d", stream.StatusCode)
	}
	events := new(atomic.Int64)
	tasks.Go(func() {
		defer stream.Body.Close()
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			if lines.Text() == "event: lock" {
				events.Add(1)
			}
		}
	})
	return events
}

// footprint is what a page has in memory.
type footprint struct{ Heap, Nodes, Listeners float64 }

// footprintOf returns the least that a page has after several garbage collections: what is in use for a moment does not
// count.
func footprintOf(page context.Context, t *testing.T) (least footprint) {
	t.Helper()
	if _, err := chromedp.Call(page, performance.Enable, performance.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := chromedp.Call(page, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			t.Fatal(err)
		}
		got, err := chromedp.Call(page, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		values := make(map[string]float64)
		for _, m := range got.Metrics {
			values[m.Name] = m.Value
		}
		now := footprint{values["JSHeapUsedSize"], values["Nodes"], values["JSEventListeners"]}
		if now.Heap == 0 || now.Nodes == 0 {
			t.Fatalf("the browser has no figures: %v", values)
		}
		if i == 0 {
			least = now
		}
		least = footprint{min(least.Heap, now.Heap), min(least.Nodes, now.Nodes), min(least.Listeners, now.Listeners)}
		<-time.After(300 * time.Millisecond)
	}
	return least
}
