package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestStreamsEndWithTheInstance, in order and soon, after its balancer could notice.
func TestStreamsEndWithTheInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	r := spawn(t, s.flags...)
	other := spawn(t, append(s.flags, "--instance", "other")...)
	const listeners = 10
	ends := make(chan error, listeners)
	var watchers []*page
	for range listeners {
		w := newPage(t, "?types=order")
		watchers = append(watchers, w)
		go func() { ends <- w.watch(t.Context(), r.url) }()
		testbedtest.Eventually(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	}
	stalls, began := detectStalls(t), time.Now()
	r.stop()
	for range listeners {
		if err := <-ends; err != io.EOF { //nolint:errorlint // Nothing but a proper end will do.
			t.Errorf("the stream ended with %v", err)
		}
	}
	r.stopped(t)
	if took := time.Since(began) - stalls.total(); took > drainWait+stopTimeout {
		t.Errorf("the instance took %v to stop", took)
	}
	other.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10,"strategy":"conditional"}`)
	id := buyOne(t, customers(t), other.url)
	for _, w := range watchers {
		resets := func() int { return w.count(func() int { return len(w.resets) }) }
		w.follow(t, other.url)
		testbedtest.Eventually(t, "they continue elsewhere", func() bool { return w.status(id) == "PENDING" || resets() > 1 })
		if resets() != 1 && stalls.total() == 0 { // otherwise something may be missing
			t.Errorf("resets: %q", w.resets)
		}
	}
}

// listeners waits until so many follow the events of the instance.
func (r *instance) listeners(t *testing.T, n int) {
	t.Helper()
	testbedtest.Eventually(t, fmt.Sprint(n, " listen"), func() bool {
		page := (&instance{url: r.admin(t)}).want(t, http.StatusOK, "GET", "/metrics", "")
		return strings.Contains(page, fmt.Sprintf("\nshop_events_listeners %d\n", n))
	})
}

// TestEventsCommand follows from an instance that is killed to another one.
func TestEventsCommand(t *testing.T) {
	t.Parallel()
	s, stalls := newStage(t), detectStalls(t)
	first, second := spawn(t, append(s.flags, "--instance", "shop-1")...), spawn(t, append(s.flags, "--instance", "shop-2")...)
	client := customers(t)
	knows(t, client, first.url, "two members", func(s httpapi.ClusterState) bool { return len(s.Members) == 2 })
	first.listeners(t, 0) // but those who have just gone
	out, problems := new(testbedtest.Buffer), new(testbedtest.Buffer)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- callUntil(ctx, t, program, noEnv, out, problems, "events", "--url", first.url+","+second.url, "--types", "order,stock", "--sku", "a")
	}()
	first.listeners(t, 1) // what happens before that is not shown
	first.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10,"strategy":"conditional"}`)
	// The command reports missed events, and misses some only if the machine was paused.
	missing := func() bool { return stalls.total() > 0 && strings.Contains(problems.String(), "missing") }
	one := buyOne(t, client, first.url)
	testbedtest.Eventually(t, "the order is shown", func() bool { return strings.Contains(out.String(), one+" PENDING of ") || missing() })
	first.kill()
	two := buyOne(t, client, second.url)
	testbedtest.Eventually(t, "it continues", func() bool { return strings.Contains(out.String(), two+" PENDING of ") || missing() })
	testbedtest.Eventually(t, "the level is shown", func() bool { return strings.Contains(out.String(), "a: 8 available, 2 reserved of 10") || missing() })
	if n := strings.Count(out.String(), one); !missing() && (n != 1 || strings.Contains(problems.String(), "missing")) {
		t.Errorf("%d times: %s%s", n, out, problems)
	}
	stop()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d: %s", code, problems)
	}

	for want, args := range map[string][]string{
		"nothing listens": {"--url", first.url}, "sku is malformed": {"--url", second.url, "--sku", "a b"},
	} {
		if code, _, stderr := call(t, noEnv, append([]string{"events"}, args...)...); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
}

// TestStreamThroughTheBalancer of the deployment comes at once, and lasts longer than the balancer waits for requests and answers.
func TestStreamThroughTheBalancer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	r := start(t, s.flags...)
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10,"strategy":"conditional"}`)
	stalls, w := detectStalls(t), newPage(t, "?types=order")
	ends := make(chan error, 1)
	url := balance(t, r.url)
	go func() { ends <- w.watch(t.Context(), url) }()
	testbedtest.Eventually(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	if os.Getenv("SHOP_TEST_SOAK") != "" {
		select {
		case err := <-ends:
			t.Fatal(err)
		case <-time.After(70 * time.Second): // `timeout server` is 50 s, `timeout client` 30 s
		}
	}
	receivesOne(t, w, stalls, customers(t), r.url)
}

// receivesOne places orders until the watcher is notified of one. It places a second order only if the watcher got a
// notice of missing events, as on a machine that was paused.
func receivesOne(t *testing.T, w *page, stalls *stallDetector, client *http.Client, url string) {
	t.Helper()
	resets := func() int { return w.count(func() int { return len(w.resets) }) }
	first := resets()
	for range rounds {
		before, id := resets(), buyOne(t, client, url)
		testbedtest.Eventually(t, "it is notified, or may be missing", func() bool { return w.status(id) == "PENDING" || resets() > before })
		if resets() > first && stalls.total() == 0 {
			t.Fatal("something was missed, though the machine was not paused")
		}
		if w.status(id) == "PENDING" {
			return
		}
	}
	t.Fatalf("something was missed in each of %d rounds", rounds)
}

// TestOrdersContinueWithoutRedis: those that need no lock of it are placed as before, though nobody can be notified. After the
// recovery, clients are notified that events may be missing.
func TestOrdersContinueWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	r := start(t, "--database", testbedtest.Database(t), "--redis", server.URL(), "--permits", "0")
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	stalls, client := detectStalls(t), customers(t)
	w := newPage(t, "?types=order")
	w.follow(t, r.url)
	receivesOne(t, w, stalls, client, r.url)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for range 100 {
		began := time.Now()
		a := served(t.Context(), client, r.url, "a")
		d := time.Since(began)
		if a.status != http.StatusCreated || d > 15*time.Second+stalls.total() {
			t.Errorf("without Redis, after %v: %v", d, a)
		}
		took = append(took, d)
	}
	if half := quantile(took, 50); half > 5*time.Second {
		t.Errorf("without Redis half of the orders take more than %v", half)
	}
	resets := w.count(func() int { return len(w.resets) })
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	testbedtest.Eventually(t, "the watcher is notified", func() bool { return w.count(func() int { return len(w.resets) }) > resets })
	known := w.count(func() int { return len(w.orders) })
	testbedtest.Eventually(t, "orders are notified again", func() bool {
		buyOne(t, client, r.url)
		return w.count(func() int { return len(w.orders) }) > known
	})
}
