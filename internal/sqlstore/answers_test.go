package sqlstore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// keyed returns a request with a key of customer c1.
func keyed(route, key, payload string) *idempotency.Request {
	return &idempotency.Request{
		Scope: idempotency.Scope{Customer: "c1", Route: route, Key: key},
		Hash:  sha256.Sum256([]byte(payload)), Render: render,
	}
}

// render answers as an API would: what was done, or why it was not.
func render(result any, err error) (idempotency.Answer, bool) {
	if err != nil {
		return idempotency.Answer{Status: 409, Body: []byte(err.Error())}, !errors.Is(err, stock.ErrBusy)
	}
	if o, ok := result.(order.Order); ok {
		return idempotency.Answer{Status: 201, Location: "/orders/" + o.ID, Body: fmt.Appendf(nil, "%+v", o)}, true
	}
	return idempotency.Answer{Status: 200, Body: fmt.Appendf(nil, "%+v", result)}, true
}

// answered returns how a request ended for its client, the first time or again.
func answered(result any, err error) (a idempotency.Answer, replayed bool) {
	if r, ok := errors.AsType[*idempotency.Replay](err); ok {
		return r.Answer, true
	}
	a, _ = render(result, err)
	return a, false
}

// equal does the same thing at once from several sides, and fails the test unless it was done
// once and the answers are alike, of which it returns one.
func equal(t *testing.T, times int, do func(n int) (result any, err error)) idempotency.Answer {
	t.Helper()
	var (
		group   sync.WaitGroup
		start   = make(chan struct{})
		answers = make([]idempotency.Answer, times)
		replays = make([]bool, times)
	)
	for n := range times {
		group.Go(func() {
			<-start
			answers[n], replays[n] = answered(do(n))
		})
	}
	close(start)
	group.Wait()
	firsts := 0
	for n := range times {
		if !replays[n] {
			firsts++
		}
		if diff := cmp.Diff(answers[0], answers[n]); diff != "" {
			t.Errorf("two answers (-first +%d):\n%s", n, diff)
		}
	}
	if firsts != 1 {
		t.Errorf("done %d times of %d", firsts, times)
	}
	return answers[0]
}

// Twenty equal requests that arrive at once at three instances have one effect and one answer,
// whatever they ask for; so has one that comes later, and another payload has none.
func TestEqualRequestsAreOne(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		var services []*order.Service
		var stores []*sqlstore.Store
		lease := memlock.New(memlock.Config{})
		for i := range 3 {
			stores = append(stores, open(t, url, fmt.Sprint("instance-", i)))
			services = append(services, order.NewService(stores[i], stock.NewStrategies(lease), order.Config{}))
		}
		ctx, s := t.Context(), stores[0]
		for sku, units := range map[string]int64{"conditional": 100, "for-update": 1, "optimistic": 100, "redis": 1} {
			create(t, s, sku, sku, units)
			once := keyed("POST /orders", sku, "one unit")
			place := func(n int) (any, error) {
				return services[n%3].Place(ctx, order.Purchase{
					Customer: "c1", Items: []order.Item{{SKU: sku, Quantity: 1}}, Once: once,
				})
			}
			first := equal(t, 20, place)
			if first.Status != 201 {
				t.Fatalf("%s: %s", sku, first.Body)
			}
			if got, replayed := answered(place(1)); !replayed || cmp.Diff(first, got) != "" {
				t.Errorf("%s, later: %+v", sku, got)
			}
			if got, found, err := stores[1].Answer(ctx, once); err != nil || !found || cmp.Diff(first, got) != "" {
				t.Errorf("%s, looked up: %+v, %v, %v", sku, got, found, err)
			}
			once.Hash[0]++
			if _, err := place(2); !errors.Is(err, idempotency.ErrReused) {
				t.Errorf("%s, another payload: %v", sku, err)
			}
			balanced(t, s, sku, 1, 0)
		}
		target := order.Target{ID: place(t, s, time.Minute, "conditional").ID}
		for route, do := range map[string]func(n int, once *idempotency.Request) (any, error){
			"extend": func(n int, once *idempotency.Request) (any, error) {
				target := target
				target.Once = once
				return services[n%3].Extend(ctx, target, time.Minute)
			},
			"restock": func(n int, once *idempotency.Request) (any, error) {
				return stores[n%3].Restock(ctx, "conditional", 5, once)
			},
			"refuse": func(n int, _ *idempotency.Request) (any, error) {
				return services[n%3].Place(ctx, order.Purchase{
					Customer: "c1", Items: []order.Item{{SKU: "for-update", Quantity: 1}}, Once: keyed("POST /orders", "sold out", ""),
				})
			},
		} {
			equal(t, 20, func(n int) (any, error) { return do(n, keyed("POST /"+route, "key", "")) })
		}
		if o, err := s.Order(ctx, target.ID, ""); err != nil || o.ExpiresAt.Sub(o.CreatedAt) != 2*time.Minute {
			t.Errorf("extended to %v, %v", o.ExpiresAt.Sub(o.CreatedAt), err)
		}
		pay := target
		pay.Once = keyed("POST /pay", "key", "")
		equal(t, 20, func(n int) (any, error) {
			o, changed, err := stores[n%3].Settle(ctx, pay, order.Confirmed, "p1")
			if err == nil && !changed {
				err = errors.New("neither paid nor replayed")
			}
			return o, err
		})
		pay.Once.Hash[0]++
		if _, _, err := s.Settle(ctx, pay, order.Confirmed, "p1"); !errors.Is(err, idempotency.ErrReused) {
			t.Errorf("paid with the key of another payment: %v", err)
		}
		if a := auditOf(t, s, "conditional"); !a.OK() || a.Open != 1 || a.Sold != 1 || a.Stocked != 105 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

// A batch may hold a request several times, and requests that were answered before.
func TestBatchWithKeys(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		for _, w := range []stock.Write{stock.Conditional, stock.RowLock} {
			sku := fmt.Sprint("a", w)
			create(t, s, sku, "conditional", 5)
			with := func(quantity int64, key, payload string) *order.Request {
				r := request(quantity, sku)
				if key != "" {
					r.Once = keyed("POST /"+sku, key, payload)
				}
				return r
			}
			commit := func(batch ...*order.Request) {
				t.Helper()
				if err := s.Commit(ctx, claim(sku, w, dlock.Fence{}), batch); err != nil {
					t.Fatal(err)
				}
			}
			old := with(1, "old", "")
			commit(old)
			batch := []*order.Request{
				with(9, "too much", ""), with(9, "too much", ""), with(1, "new", ""), with(1, "", ""),
				with(1, "new", ""), with(1, "new", "other"), with(1, "old", ""), with(1, "old", "other"), with(1, "last", ""),
			}
			commit(batch...)
			var got []string
			for i, r := range batch {
				_, short := errors.AsType[*stock.ShortageError](r.Err)
				replay, replayed := errors.AsType[*idempotency.Replay](r.Err)
				switch {
				case r.Err == nil:
					got = append(got, "placed")
				case short:
					got = append(got, "short")
				case replayed:
					got = append(got, "replayed")
					first := map[string]*order.Request{"new": batch[2], "old": old}[r.Once.Scope.Key]
					if want, _ := render(first.Order, nil); cmp.Diff(want, replay.Answer) != "" {
						t.Errorf("%d: %+v, want %+v", i, replay.Answer, want)
					}
				case errors.Is(r.Err, idempotency.ErrReused):
					got = append(got, "reused")
				default:
					t.Error(r.Err)
				}
			}
			want := []string{"short", "short", "placed", "placed", "replayed", "reused", "replayed", "reused", "placed"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("write %d (-want +got):\n%s", w, diff)
			}
			balanced(t, s, sku, 4, 0)
		}
	})
}

// The replies to all COMMITs are lost. The key tells what became of each: one effect, and the
// answer that is stored.
func TestLostReplyIsResolvedByTheKey(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	ctx := t.Context()
	create(t, s, "a", "conditional", 10)
	r, queued := request(1, "a"), request(1, "a")
	r.Once, queued.Once = keyed("POST /orders", "key", ""), keyed("POST /orders", "queued", "")
	with := func(route string) order.Target {
		return order.Target{ID: r.Order.ID, Owner: "c1", Once: keyed(route, "key", "")}
	}
	extend, pay, restock, refuse := with("extend"), with("pay"), keyed("restock", "key", ""), keyed("refuse", "key", "")
	sold := &stock.ShortageError{Shortages: []stock.Shortage{{SKU: "a", Requested: 99}}}
	for _, c := range []struct {
		reply string
		once  *idempotency.Request
		do    func() (any, error)
	}{
		{"COMMIT", r.Once, func() (any, error) {
			err := s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{r})
			return r.Order, errors.Join(err, r.Err)
		}},
		{"COMMIT", extend.Once, func() (any, error) {
			o, _, err := s.Extend(ctx, extend, time.Minute, 4*time.Hour)
			return o, err
		}},
		{"COMMIT", pay.Once, func() (any, error) {
			o, _, err := s.Settle(ctx, pay, order.Confirmed, "p1")
			return o, err
		}},
		{"COMMIT", restock, func() (any, error) { return s.Restock(ctx, "a", 5, restock) }},
		{"COMMIT", queued.Once, func() (any, error) {
			err := s.Enqueue(ctx, queued, time.Second)
			return queued.Order, err
		}},
		{"INSERT INTO idempotency_keys", refuse, func() (any, error) { return nil, s.Refuse(ctx, refuse, nil, sold) }},
	} {
		before := proxy.Dropped()
		proxy.DropReply(c.reply)
		got, _ := answered(c.do())
		stored, found, err := s.Answer(ctx, c.once)
		if err != nil || !found || cmp.Diff(stored, got) != "" {
			t.Errorf("%s: answered %+v, stored %+v, %v, %v", c.once.Scope.Route, got, stored, found, err)
		}
		if proxy.Dropped() != before+1 {
			t.Errorf("%s: no reply was lost", c.once.Scope.Route)
		}
		if again, replayed := answered(c.do()); c.once != r.Once && c.once != queued.Once && (!replayed || cmp.Diff(stored, again) != "") {
			t.Errorf("%s: again: %+v, replayed %v", c.once.Scope.Route, again, replayed)
		}
	}
	o, err := s.Order(ctx, r.Order.ID, "c1")
	if err != nil || o.Status != order.Confirmed || o.ExpiresAt.Sub(o.CreatedAt) != time.Hour+time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Sold != 1 || a.Open != 0 || a.Stocked != 15 {
		t.Errorf("%+v %q", a, a.Broken())
	}
}

// Keys differ by customer, route and every byte, and what is not final is not stored.
func TestScopesOfKeys(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		place := func(once *idempotency.Request) error {
			r := request(1, "a")
			r.Once = once
			return errors.Join(s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{r}), r.Err)
		}
		other := keyed("POST /orders", "key", "")
		other.Scope.Customer = ""
		longest := keyed(string(make([]byte, 128)), string(make([]byte, 255)), "")
		for i, once := range []*idempotency.Request{
			keyed("POST /orders", "key", ""), keyed("POST /orders", "Key", ""), keyed("POST /orders", "key ", ""),
			keyed("post /orders", "key", ""), other, longest,
		} {
			if err := place(once); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			if _, replayed := errors.AsType[*idempotency.Replay](place(once)); !replayed {
				t.Errorf("%d again: no replay", i)
			}
		}
		balanced(t, s, "a", 6, 0)
		long := keyed("POST /orders", string(make([]byte, 256)), "")
		if err := place(long); err == nil {
			t.Error("a key of 256 bytes was stored")
		}
		busy := keyed("POST /orders", "busy", "")
		if err := s.Refuse(ctx, busy, nil, stock.ErrBusy); !errors.Is(err, stock.ErrBusy) {
			t.Error(err)
		}
		if _, found, err := s.Answer(ctx, busy); found || err != nil {
			t.Errorf("busy is stored, %v", err)
		}
		balanced(t, s, "a", 6, 0)
	})
}

// Old answers go, the oldest first and no more than asked for.
func TestPurgeAnswers(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		ctx, s := t.Context(), open(t, url, "one", raw)
		sold := &stock.ShortageError{}
		for n := range 8 {
			if err := s.Refuse(ctx, keyed("POST /orders", fmt.Sprint(n), ""), nil, sold); !errors.Is(err, sold) {
				t.Fatal(err)
			}
			if err := raw.db.Exec("UPDATE idempotency_keys SET created_at = created_at - ? WHERE idem_key = ?",
				time.Duration(n)*time.Hour/time.Microsecond, fmt.Sprint(n)).Error; err != nil {
				t.Fatal(err)
			}
		}
		purge := func(age time.Duration, limit int, want int64) {
			t.Helper()
			if n, err := s.PurgeAnswers(ctx, age, limit); err != nil || n != want {
				t.Errorf("%d deleted, want %d, %v", n, want, err)
			}
		}
		kept := func(from int) {
			t.Helper()
			for n := range 8 {
				_, found, err := s.Answer(ctx, keyed("POST /orders", fmt.Sprint(n), ""))
				if err != nil || found != (n < from) {
					t.Errorf("%d: found %v, %v", n, found, err)
				}
			}
		}
		purge(24*time.Hour, 100, 0)
		purge(210*time.Minute, 3, 3) // 7, 6 and 5 of 4 to 7
		kept(5)
		purge(210*time.Minute, 100, 1)
		kept(4)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.PurgeAnswers(ended, 0, 100); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
