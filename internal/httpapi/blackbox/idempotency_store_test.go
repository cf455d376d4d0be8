package blackbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// looking counts the reads of stored keys.
type looking struct {
	*memory

	looks int
}

func (l *looking) Answer(ctx context.Context, r *idempotency.Request) (idempotency.Answer, bool, error) {
	l.looks++
	if ctx.Err() != nil {
		return idempotency.Answer{}, false, context.Cause(ctx)
	}
	return l.memory.Answer(ctx, r)
}

// TestNewOrderReadsNoStoredResponse; a repetition has its
// answer all the same, also when it is refused before it comes to the stored keys.
func TestNewOrderReadsNoStoredResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused error
		m := &looking{memory: newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), refused })}
		s := newHandler(t, httpapi.Config{Orders: m, Stock: m})
		step := func(key string, status int, replayed bool, looks, work int) {
			t.Helper()
			m.looks = 0
			got, header, body := s.do(post(basket, "Idempotency-Key", key))
			if got != status || header.Get("Idempotent-Replayed") == "true" != replayed || m.looks != looks || m.work != work {
				t.Errorf("%s: status %d, replayed %q, %d looks, %d orders at work: %s", key, got, header.Get("Idempotent-Replayed"), m.looks, m.work, body)
			}
		}
		step("k1", 201, false, 0, 1)
		step("k2", 201, false, 0, 2)
		step("k1", 201, true, 0, 2) // found by the transaction
		refused = stock.ErrBusy
		step("k3", 503, false, 1, 3)
		step("k2", 201, true, 1, 4)
		refused = &stock.ShortageError{Shortages: []stock.Shortage{{SKU: "s1", Requested: 2}}}
		step("k4", 409, false, 0, 5)
		step("k1", 201, true, 0, 5)
		refused = nil
		for _, again := range []bool{false, true} { // so it is with every operation
			for path, r := range keyed("k5") {
				m.looks = 0
				if status, header, body := s.do(r); status >= 300 || header.Get("Idempotent-Replayed") == "true" != again || m.looks != 0 {
					t.Errorf("%s, again %v: status %d, replayed %q, %d looks: %s", path, again, status, header.Get("Idempotent-Replayed"), m.looks, body)
				}
			}
		}
	})
}

// TestFailedRetryReturnsTheStoredResponse: a retry that waited for a lock until its time was over, or whose outcome
// is unknown.
func TestFailedRetryReturnsTheStoredResponse(t *testing.T) {
	for name, end := range map[string]func(context.Context) error{
		"time":    func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("%w: %w", stock.ErrBusy, ctx.Err()) },
		"unknown": func(context.Context) error { return order.ErrOutcomeUnknown },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				work := func(context.Context) error { return nil }
				m := newMemory(func(ctx context.Context) (order.Order, error) { return someOrderOf("c1"), work(ctx) })
				s := newHandler(t, httpapi.Config{Orders: &looking{memory: m}})
				if got, _, body := s.do(post(basket, "Idempotency-Key", "k1")); got != 201 {
					t.Fatalf("status %d: %s", got, body)
				}
				work = end
				for _, c := range []struct {
					key, body string
					want      int
				}{{"k2", basket, 503}, {"k1", basket, 201}, {"k3", basket, 503}, {"k1", strings.Replace(basket, "s1", "s2", 1), 422}} {
					got, header, body := s.do(post(c.body, "Idempotency-Key", c.key))
					if got != c.want || header.Get("Idempotent-Replayed") == "true" != (c.want == 201) {
						t.Errorf("%s: status %d, %v: %s", c.key, got, header, body)
					}
				}
			})
		})
	}
}

// slowly answers no question about stored keys before its context ends.
type slowly struct{ *memory }

func (slowly) Answer(ctx context.Context, _ *idempotency.Request) (idempotency.Answer, bool, error) {
	<-ctx.Done()
	return idempotency.Answer{}, false, context.Cause(ctx)
}

// TestAnswerLeavesWithinTheTimeLimit: an order that waits for its transaction 250 ms longer than its context lasts, as
// the order service does, and whose key cannot be looked for.
func TestAnswerLeavesWithinTheTimeLimit(t *testing.T) {
	for prefer, limit := range map[string]time.Duration{"": 10 * time.Second, "wait=5": 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory(func(ctx context.Context) (order.Order, error) {
				<-ctx.Done()
				time.Sleep(250 * time.Millisecond)
				return order.Order{}, order.ErrOutcomeUnknown
			})
			s := newHandler(t, httpapi.Config{Orders: slowly{m}})
			start := time.Now()
			status, _, p := s.send(t, post(basket, "Idempotency-Key", "k1", "Prefer", prefer))
			if wantType(t, p, "outcome-unknown"); status != 503 || time.Since(start) >= limit {
				t.Errorf("%q: %d after %v, want less than %v", prefer, status, time.Since(start), limit)
			}
		})
	}
}

// postKeyed returns a POST request with a key, and with a body of JSON unless that is empty.
func postKeyed(path, body, key string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", jsonType)
	}
	r.Header.Set("Idempotency-Key", key)
	return r
}

// allAtOnce sends a request with one key twenty times at once, and returns the answers and how many are replays.
func allAtOnce(instances []*shop, path, body, key string) (answers []string, replays int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	answers = make([]string, 20)
	start := make(chan struct{})
	for i := range answers {
		all.Go(func() {
			<-start
			var (
				status int
				header http.Header
				answer []byte
			)
			for again := true; again; again = status == http.StatusServiceUnavailable && strings.Contains(string(answer), "problems/lock-timeout") {
				status, header, answer = instances[i%len(instances)].do(postKeyed(path, body, key))
			}
			mu.Lock()
			defer mu.Unlock()
			answers[i] = fmt.Sprint(status, header["Location"], header["Content-Type"], string(answer))
			if header.Get("Idempotent-Replayed") != "" {
				replays++
			}
		})
	}
	close(start)
	all.Wait()
	return answers, replays
}

// TestOneKeyManyInstances sends each request many times at once, with one key, to instances that
// share nothing but the database.
func TestOneKeyManyInstances(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + t.TempDir() + "/shop.db"
	var instances []*shop
	for range 3 {
		store := openStore(t, url)
		strategies := stock.NewStrategies(stock.Lockers{})
		instances = append(instances, newHandler(t, httpapi.Config{
			Orders: order.NewService(store, strategies, order.Config{}), Stock: stock.NewService(store, strategies, nil),
		}))
	}
	s := instances[0]
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":100,"strategy":"conditional"}`)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/none", `{"on_hand":0,"strategy":"conditional"}`)
	paid, cancelled := orders+"/"+s.place(t), orders+"/"+s.place(t)
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{orders, basket, 201},
		{orders, strings.Replace(basket, "s1", "none", 1), 409},
		{cancelled + "/extend", `{"by_seconds":900}`, 200},
		{cancelled + "/cancel", "", 200},
		{paid + "/pay", `{"payment_id":"p1"}`, 200},
		{paid + "/cancel", "", 409}, // by the state of the order, which stores nothing
		{"/api/v1/skus/s1/restock", `{"quantity":7}`, 200},
	} {
		answers, replays := allAtOnce(instances, c.path, c.body, "k-"+c.path[len(c.path)-4:]+fmt.Sprint(c.want))
		for _, a := range answers {
			if a != answers[0] || !strings.HasPrefix(a, fmt.Sprint(c.want)) {
				t.Errorf("%s: %s and %s", c.path, answers[0], a)
			}
		}
		if replays != len(answers)-1 && c.path != paid+"/cancel" {
			t.Errorf("%s: %d replays", c.path, replays)
		}
	}
	got := s.must(t, 200, http.MethodGet, "/api/v1/audit?sku=s1", "")["skus"].([]any)[0].(map[string]any)
	if got["stocked"] != 107.0 || got["accepted"] != 4.0 || got["ok"] != true {
		t.Errorf("books: %v", got)
	}
	if n := len(s.must(t, 200, http.MethodGet, orders, "")["orders"].([]any)); n != 3 {
		t.Errorf("%d orders", n)
	}
}

// TestResponseWithoutEffectIsNotStored: a customer may pay, cancel and extend with fresh keys without limit. A row
// for each request would let the table grow. The state of the order yields the same response again.
func TestResponseWithoutEffectIsNotStored(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	strategies := stock.NewStrategies(stock.Lockers{})
	s := newHandler(t, httpapi.Config{
		Orders: order.NewService(store, strategies, order.Config{}), Stock: stock.NewService(store, strategies, nil),
	})
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":100,"strategy":"conditional"}`)
	paid, cancelled := orders+"/"+s.place(t), orders+"/"+s.place(t)
	fresh := 0
	send := func(path, body string) (status int, answer string) {
		fresh++
		status, header, text := s.do(postKeyed(path, body, fmt.Sprint("k", fresh)))
		if header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s with a fresh key is replayed", path)
		}
		return status, string(text)
	}
	for _, c := range []struct {
		path, body string
		want       int
		first      int // the status of the first request, if that changes something
	}{
		{paid + "/pay", `{"payment_id":"p1"}`, 200, 200},
		{paid + "/pay", `{"payment_id":"p2"}`, 409, 0},
		{paid + "/cancel", "", 409, 0},
		{paid + "/extend", `{"by_seconds":1}`, 409, 0},
		{cancelled + "/cancel", "", 200, 200},
		{cancelled + "/pay", `{"payment_id":"p1"}`, 409, 0},
		{cancelled + "/extend", `{"by_seconds":1}`, 409, 0},
		{cancelled + "/extend", `{"by_seconds":3600}`, 409, 0},
	} {
		if c.first != 0 {
			if status, answer := send(c.path, c.body); status != c.first {
				t.Fatalf("%s: %d %s", c.path, status, answer)
			}
		}
		_, once := send(c.path, c.body)
		for range 10 {
			if status, answer := send(c.path, c.body); status != c.want || answer != once {
				t.Errorf("%s: %d %s, want %d %s", c.path, status, answer, c.want, once)
			}
		}
	}
	// Those that changed something: a payment and a cancellation.
	if n, err := store.PurgeAnswers(t.Context(), nil, -time.Hour, 1000); err != nil || n != 2 {
		t.Errorf("%d answers are stored, %v, want 2", n, err)
	}
}
