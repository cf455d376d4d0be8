package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// TestEventStreamSurvivesKilledConnections to Redis, again and again under load: a page receives each order once, without a reset.
func TestEventStreamSurvivesKilledConnections(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	opts, err := redis.ParseURL(s.redis)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	client := customers(t)
	w := newPage(t, "?types=order")
	w.follow(t, fleet[1].url)
	testbedtest.Eventually(t, "the page begins", func() bool { return w.count(func() int { return len(w.resets) }) == 1 })
	kills := 20
	if os.Getenv("SHOP_TEST_SOAK") != "" {
		kills = 200
	}
	ids := make(map[string]bool)
	killed := int64(0)
	for n := range kills {
		surely(t, func() error {
			k, err := rdb.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Result()
			killed += k
			return err
		})
		for range 5 {
			ids[buyOne(t, client, fleet[n%3].url)] = true
		}
	}
	if killed < int64(kills) {
		t.Errorf("%d connections were killed in %d rounds", killed, kills)
	}
	for id := range ids {
		testbedtest.Eventually(t, "the order is known", func() bool { return w.status(id) == "PENDING" })
	}
	if n := w.count(func() int { return len(w.resets) + len(w.twice) }); n != 1 {
		t.Errorf("resets %q, %d events twice", w.resets, len(w.twice))
	}
	t.Logf("%d connections were killed in %d rounds", killed, kills)
}

// reread reads all orders.
func reread(t *testing.T, w *page, client *http.Client, url string) {
	t.Helper()
	for next := ""; ; {
		a := insist(func() answer {
			return ask(t.Context(), client, http.MethodGet, url+"/api/v1/orders?limit=100"+next, "")
		})
		var part struct {
			Orders []events.Order
			Next   *string
		}
		if t.Context().Err() != nil {
			return
		}
		if err := json.Unmarshal([]byte(a.body), &part); err != nil || a.status != http.StatusOK {
			t.Errorf("%v: %v", a, err)
			return
		}
		w.mu.Lock()
		for _, o := range part.Orders {
			w.learn(o)
		}
		w.mu.Unlock()
		if part.Next == nil {
			return
		}
		next = "&cursor=" + *part.Next
	}
}

// TestOrdersContinueWithoutRedis: orders that need no lock of Redis are placed as before, without notifications. When
// Redis has recovered, each listener gets a reset.
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
