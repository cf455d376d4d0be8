package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// page watches events, as one that is open somewhere: from one instance to the next, with the id that came last.
type page struct {
	client *http.Client
	query  string
	key    string // to be shown, as the value of Authorization; may be empty
	lastID string
	reload func() // at a reset; may be nil

	mu     sync.Mutex
	events []events.Event
	orders map[string]string // status by id
	twice  []string          // ids that came again
	seen   map[string]bool   // ids since the last reset
	resets []string          // reasons
}

func newPage(t *testing.T, query string) *page {
	t.Helper()
	client := &http.Client{Transport: new(http.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	return &page{client: client, query: query, orders: make(map[string]string), seen: make(map[string]bool)}
}

// watch follows one stream to its end.
func (w *page) watch(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/events"+w.query, nil)
	if err != nil {
		return err
	}
	if w.lastID != "" {
		r.Header.Set("Last-Event-ID", w.lastID)
	}
	if w.key != "" {
		r.Header.Set("Authorization", w.key)
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", answer.Status)
	}
	for m, err := range events.Messages(answer.Body) {
		if err != nil {
			return err
		}
		if err := w.take(m); err != nil {
			return err
		}
	}
	return nil
}

func (w *page) take(m events.Message) error {
	if m.ID != "" {
		w.lastID = m.ID
	}
	if m.Data == "" {
		return nil
	}
	if m.Kind == "reset" {
		w.mu.Lock()
		w.resets = append(w.resets, m.Data)
		clear(w.seen)
		w.mu.Unlock()
		if w.reload != nil {
			w.reload()
		}
		return nil
	}
	var e events.Event
	if err := json.Unmarshal([]byte(m.Data), &e); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[m.ID] {
		w.twice = append(w.twice, m.ID)
	}
	w.seen[m.ID] = true
	w.events = append(w.events, e)
	if o := e.Order; o != nil {
		w.learn(*o)
	}
	return nil
}

// learn keeps how an order is. What several instances tell of one comes in any order, and what is final stays so.
func (w *page) learn(o events.Order) {
	if was := w.orders[o.ID]; was == "" || was == "QUEUED" || was == "PENDING" && o.Status != "QUEUED" {
		w.orders[o.ID] = o.Status
	}
}

// follow watches in the background until the test ends.
func (w *page) follow(t *testing.T, url string) {
	t.Helper()
	t.Cleanup(w.begin(t, url))
}

// begin watches in the background until it is stopped.
func (w *page) begin(t *testing.T, url string) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			_ = w.watch(ctx, url) // the next one goes on
		}
	})
	testbedtest.Eventually(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	return func() {
		stop()
		group.Wait()
	}
}

func (w *page) count(of func() int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return of()
}

func (w *page) status(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.orders[id]
}

// any reports whether an event was seen that is like that.
func (w *page) any(like func(events.Event) bool) bool {
	return w.count(func() int { return slices.IndexFunc(w.events, like) }) >= 0
}

// buyOne places an order of a, and returns its id.
func buyOne(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	a := served(t.Context(), client, url, "a")
	if a.status != http.StatusCreated {
		t.Fatal(a)
	}
	return orderID(t, a.body)
}

func orderID(t *testing.T, body string) string {
	t.Helper()
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatal(err)
	}
	return o.ID
}

// TestEventsReachEveryInstance: what happens at one of three is seen by those who follow another one.
func TestEventsReachEveryInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t, "--order-ttl", "6s")
	still, client := watchStillness(t), customers(t)
	var watchers []*page
	for _, r := range fleet {
		w := newPage(t, "")
		w.follow(t, r.url)
		watchers = append(watchers, w)
	}
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"redis"}`)
	resets := func() (n int) { // who was told that something may be missing need not hear it
		for _, w := range watchers {
			n += w.count(func() int { return len(w.resets) })
		}
		return n
	}
	paid, first := int64(0), resets()
	for round, calm := 1, false; !calm; round++ {
		before := resets()
		want := map[string]string{
			ended(t, client, fleet[0], fleet[1], "pay", `{"payment_id":"p1"}`): "CONFIRMED", ended(t, client, fleet[0], fleet[2], "cancel", ""): "CANCELLED",
			buyOne(t, client, fleet[0].url): "EXPIRED",
		}
		paid++
		calm = true
		for i, w := range watchers {
			testbedtest.Eventually(t, fmt.Sprintf("at %d all is told, or may be missing", i), func() bool {
				all := !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(id string) bool { return w.status(id) != want[id] }) &&
					w.any(func(e events.Event) bool {
						return e.Stock != nil && e.Stock.SKU == "a" && e.Stock.OnHand == 1000-paid && e.Stock.Reserved == 0
					}) &&
					w.any(func(e events.Event) bool {
						return e.Lock != nil && e.Lock.SKU == "a" && e.Lock.Strategy == "redis" && e.Lock.Holder == "shop-1" && e.Lock.Fence > 0
					}) &&
					w.any(func(e events.Event) bool {
						return e.Timer != nil && e.Timer.Kind == "order.expire" && e.Timer.Outcomes["committed"] > 0
					})
				calm = all || resets() == before
				return all || !calm
			})
			if !calm {
				break
			}
		}
		if resets() > first && still.stood() == 0 {
			t.Fatal("something was missed, though the machine did not stand still")
		}
		if !calm && round == rounds {
			t.Fatalf("something was missed in each of %d rounds", rounds)
		}
	}
}

// rounds is how often a test tries again because listeners may have missed something.
const rounds = 5

// ended places an order at one instance, and pays or cancels it at another one: again if its time was over by then, on a machine
// that stood still.
func ended(t *testing.T, client *http.Client, at, r *running, how, body string) (id string) {
	t.Helper()
	testbedtest.Eventually(t, how, func() bool {
		id = buyOne(t, client, at.url)
		a := insist(func() answer {
			return ask(t.Context(), client, http.MethodPost, r.url+"/api/v1/orders/"+id+"/"+how, body)
		})
		if a.status != http.StatusOK && !strings.Contains(a.body, "EXPIRED") {
			t.Fatal(a)
		}
		return a.status == http.StatusOK
	})
	return id
}

// unheard is when everybody is told that an instance which has died is silent, and may have had something to say: four times
// the Silence of the bus, if nothing else has happened by then.
const unheard = 12 * time.Second

// TestEventsOfTheCluster: who joins, who leads, and who was killed.
func TestEventsOfTheCluster(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	still, client := watchStillness(t), customers(t)
	spawned := map[string]*spawned{}
	for _, name := range []string{"shop-1", "shop-2"} {
		spawned[name] = spawn(t, append(s.flags, "--instance", name)...)
	}
	state, _ := knows(t, client, spawned["shop-2"].url, "two members and a leader", func(s httpapi.ClusterState) bool {
		return len(s.Members) == 2 && s.Leader != nil
	})
	dead, alive := state.Leader.Name, "shop-1"
	if dead == alive {
		alive = "shop-2"
	}
	w := newPage(t, "?types=member,leader")
	w.follow(t, spawned[alive].url)
	missed := func() bool { return w.count(func() int { return len(w.resets) }) > 1 } // and says so: it need not hear all
	spawn(t, append(s.flags, "--instance", "shop-3")...)
	testbedtest.Eventually(t, "who joins is told", func() bool {
		return missed() || w.any(func(e events.Event) bool {
			return e.Member != nil && e.Member.Name == "shop-3" && !e.Member.Left && e.Member.Address != ""
		})
	})
	killed := time.Now()
	spawned[dead].kill()
	testbedtest.Eventually(t, "who has gone is told", func() bool {
		return missed() || w.any(func(e events.Event) bool { return e.Member != nil && e.Member.Name == dead && e.Member.Left })
	})
	testbedtest.Eventually(t, "who leads is told", func() bool {
		return missed() || w.any(func(e events.Event) bool {
			return e.Leader != nil && e.Leader.Name != dead && e.Leader.Term > uint64(state.Leader.Term)
		})
	})
	if missed() && still.stood() == 0 && time.Since(killed) < unheard {
		t.Errorf("resets, though the machine did not stand still: %q", w.resets)
	}
}

// TestWatcherGoesFromInstanceToInstance under load, with what it heard last: it sees every order once, or is told.
func TestWatcherGoesFromInstanceToInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	client := customers(t)
	w := newPage(t, "?types=order")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watching, selling sync.WaitGroup
	var hops, reloads atomic.Int64
	w.reload = func() {
		if reloads.Add(1) > 1 { // an instance was too far behind another one
			reread(t, w, client, fleet[0].url)
		}
	}
	watching.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			once, cut := context.WithTimeout(ctx, 200*time.Millisecond)
			_ = w.watch(once, fleet[n%3].url) // and off to the next
			cut()
			hops.Add(1)
		}
	})
	testbedtest.Eventually(t, "the stream has begun", func() bool { return reloads.Load() > 0 })
	var mu sync.Mutex
	var placed []string
	var enough atomic.Bool
	for i := range 3 {
		selling.Go(func() {
			for !enough.Load() {
				if a := purchase(ctx, client, fleet[i].url, "a"); a.status == http.StatusCreated {
					mu.Lock()
					placed = append(placed, orderID(t, a.body))
					mu.Unlock()
				}
			}
		})
	}
	want := int64(15)
	if os.Getenv("SHOP_TEST_SOAK") != "" {
		want = 100
	}
	before := hops.Load()
	testbedtest.Eventually(t, "the watcher was everywhere, and mostly went on where it was", func() bool {
		return hops.Load() >= before+want && w.count(func() int { return len(w.resets) }) <= 1+int(hops.Load())/4
	})
	enough.Store(true)
	selling.Wait()
	testbedtest.Eventually(t, "all orders were seen", func() bool { // others, too: of some nobody has heard that they were placed
		return !slices.ContainsFunc(placed, func(id string) bool { return w.status(id) == "" })
	})
	stop()
	watching.Wait()
	for _, id := range placed {
		if w.status(id) == "" {
			t.Errorf("%s was never seen", id)
		}
	}
	if len(w.twice) > 0 {
		t.Errorf("%d events came twice; resets: %q", len(w.twice), w.resets)
	}
	t.Logf("%d orders, seen from %d streams; %d resets", len(placed), hops.Load(), len(w.resets))
}

// TestEventsSurviveKilledConnections to Redis, again and again under load: a page receives each order once, without a reset.
func TestEventsSurviveKilledConnections(t *testing.T) {
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
		next = "&before=" + *part.Next
	}
}

// TestOrdersGoOnWithoutRedis: those that need no lock of it are placed as before, though nobody can be told. Who listens is
// told so when it is back.
func TestOrdersGoOnWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	r := start(t, "--database", testbedtest.Database(t), "--redis", server.URL(), "--permits", "0")
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	still, client := watchStillness(t), customers(t)
	w := newPage(t, "?types=order")
	w.follow(t, r.url)
	toldOfOne(t, w, still, client, r.url)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for range 100 {
		began := time.Now()
		a := served(t.Context(), client, r.url, "a")
		d := time.Since(began)
		if a.status != http.StatusCreated || d > 15*time.Second+still.stood() {
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
	testbedtest.Eventually(t, "the watcher is told", func() bool { return w.count(func() int { return len(w.resets) }) > resets })
	known := w.count(func() int { return len(w.orders) })
	testbedtest.Eventually(t, "orders are told again", func() bool {
		buyOne(t, client, r.url)
		return w.count(func() int { return len(w.orders) }) > known
	})
}

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
	still, began := watchStillness(t), time.Now()
	r.terminate(t)
	for range listeners {
		if err := <-ends; err != io.EOF { //nolint:errorlint // Nothing but a proper end will do.
			t.Errorf("the stream ended with %v", err)
		}
	}
	r.stopped(t)
	if took := time.Since(began) - still.stood(); took > drainWait+stopTimeout {
		t.Errorf("the instance took %v to stop", took)
	}
	other.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10,"strategy":"conditional"}`)
	id := buyOne(t, customers(t), other.url)
	for _, w := range watchers {
		resets := func() int { return w.count(func() int { return len(w.resets) }) }
		w.follow(t, other.url)
		testbedtest.Eventually(t, "they go on elsewhere", func() bool { return w.status(id) == "PENDING" || resets() > 1 })
		if resets() != 1 && still.stood() == 0 { // otherwise something may be missing
			t.Errorf("resets: %q", w.resets)
		}
	}
}

// listeners waits until so many follow the events of the instance.
func (r *running) listeners(t *testing.T, n int) {
	t.Helper()
	testbedtest.Eventually(t, fmt.Sprint(n, " listen"), func() bool {
		page := (&running{url: r.admin(t)}).want(t, http.StatusOK, "GET", "/metrics", "")
		return strings.Contains(page, fmt.Sprintf("\nshop_events_listeners %d\n", n))
	})
}

// TestEventsCommand follows from an instance that is killed to another one.
func TestEventsCommand(t *testing.T) {
	t.Parallel()
	s, still := newStage(t), watchStillness(t)
	first, second := spawn(t, append(s.flags, "--instance", "shop-1")...), spawn(t, append(s.flags, "--instance", "shop-2")...)
	client := customers(t)
	knows(t, client, first.url, "two members", func(s httpapi.ClusterState) bool { return len(s.Members) == 2 })
	first.listeners(t, 0) // but those who have just gone
	out, problems := new(testbedtest.Buffer), new(testbedtest.Buffer)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"events", "--url", first.url + "," + second.url, "--types", "order,stock", "--sku", "a"}, noEnv, strings.NewReader(""), out, problems)
	}()
	first.listeners(t, 1) // what happens before that is not shown
	first.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10,"strategy":"conditional"}`)
	// What it has missed it says, and it has missed something only if the machine stood still.
	missing := func() bool { return still.stood() > 0 && strings.Contains(problems.String(), "missing") }
	one := buyOne(t, client, first.url)
	testbedtest.Eventually(t, "the order is shown", func() bool { return strings.Contains(out.String(), one+" PENDING of ") || missing() })
	first.kill()
	two := buyOne(t, client, second.url)
	testbedtest.Eventually(t, "it goes on", func() bool { return strings.Contains(out.String(), two+" PENDING of ") || missing() })
	testbedtest.Eventually(t, "the level is shown", func() bool { return strings.Contains(out.String(), "a: 8 available, 2 reserved of 10") || missing() })
	if n := strings.Count(out.String(), one); !missing() && (n != 1 || strings.Contains(problems.String(), "missing")) {
		t.Errorf("%d times: %s%s", n, out, problems)
	}
	stop()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d: %s", code, problems)
	}

	for _, args := range [][]string{{"--url", "nowhere"}, {"more"}, {"--url", second.url, "--types", "order,Stock"}} {
		if code, _, stderr := call(t, noEnv, append([]string{"events"}, args...)...); code != 2 || stderr == "" {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
	if code, _, stderr := call(t, noEnv, "events", "--types", "fish", "--url", first.url); code != 2 || !strings.Contains(stderr, `no type "fish"`) {
		t.Errorf("a type that there is not: exit code %d: %s", code, stderr)
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
	still, w := watchStillness(t), newPage(t, "?types=order")
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
	toldOfOne(t, w, still, customers(t), r.url)
}

// toldOfOne places orders until the watcher is told of one: of another one only if it hears that something may be missing, as
// it does where the machine has stood still.
func toldOfOne(t *testing.T, w *page, still *stillness, client *http.Client, url string) {
	t.Helper()
	resets := func() int { return w.count(func() int { return len(w.resets) }) }
	first := resets()
	for range rounds {
		before, id := resets(), buyOne(t, client, url)
		testbedtest.Eventually(t, "it is told, or may be missing", func() bool { return w.status(id) == "PENDING" || resets() > before })
		if resets() > first && still.stood() == 0 {
			t.Fatal("something was missed, though the machine did not stand still")
		}
		if w.status(id) == "PENDING" {
			return
		}
	}
	t.Fatalf("something was missed in each of %d rounds", rounds)
}
