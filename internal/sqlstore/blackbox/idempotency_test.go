package blackbox_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// keyed returns a request with a key of customer c1.
func keyed(route, key, payload string) *idempotency.Request {
	return &idempotency.Request{
		Scope: idempotency.Scope{Customer: "c1", Route: route, Key: key},
		Hash:  sha256.Sum256([]byte(payload)),
	}
}

// refusal answers as an API would that an operation failed with err.
func refusal(err error) idempotency.Answer {
	return idempotency.Answer{Status: 409, Body: []byte(err.Error())}
}

// ask places an order as an API does: a final refusal is stored.
func ask(ctx context.Context, svc *order.Service, p order.Purchase) (order.Order, error) {
	o, err := svc.Place(ctx, p)
	if isShort(err) {
		err = cmp.Or(svc.Refuse(ctx, p.Key, refusal(err)), err)
	}
	return o, err
}

// answered returns how a request ended for its client, the first time or again.
func answered(result any, err error) (a idempotency.Answer, replayed bool) {
	if r, ok := errors.AsType[*idempotency.AnsweredError](err); ok {
		return r.Answer, true
	}
	if err != nil {
		return refusal(err), false
	}
	if a, err = idempotency.Result(result); err != nil {
		return refusal(err), false
	}
	return a, false
}

// equal does the same thing at once from several sides and returns the answer. The test fails unless it was done once
// and all answers are alike.
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
			answers[n], replays[n] = answered(insist(t.Context(), func() (any, error) { return do(n) }))
		})
	}
	close(start)
	group.Wait()
	firsts := 0
	for n := range times {
		if !replays[n] {
			firsts++
		}
		if diff := gocmp.Diff(answers[0], answers[n]); diff != "" {
			t.Errorf("two answers (-first +%d):\n%s", n, diff)
		}
	}
	if firsts != 1 {
		t.Errorf("done %d times of %d", firsts, times)
	}
	return answers[0]
}

// placedOnce fails the test unless equal orders that arrive at once at several instances are one order, whose answer is stored.
func placedOnce(t *testing.T, services []*order.Service, stores []*sqlstore.Store, sku string) {
	t.Helper()
	once := keyed("POST /orders", sku, "one unit")
	place := func(n int) (any, error) {
		return ask(t.Context(), services[n%3], order.Purchase{
			Customer: "c1", Items: []order.Item{{SKU: sku, Quantity: 1}}, Key: once,
		})
	}
	first := equal(t, 20, place)
	if first.Status != 0 {
		t.Fatalf("%s: %s", sku, first.Body)
	}
	if got, replayed := answered(place(1)); !replayed || gocmp.Diff(first, got) != "" {
		t.Errorf("%s, later: %+v", sku, got)
	}
	if got, found, err := stores[1].Answer(t.Context(), once); err != nil || !found || gocmp.Diff(first, got) != "" {
		t.Errorf("%s, looked up: %+v, %v, %v", sku, got, found, err)
	}
	once.Hash[0]++
	if _, err := place(2); !errors.Is(err, idempotency.ErrReused) {
		t.Errorf("%s, another payload: %v", sku, err)
	}
	balanced(t, stores[0], sku, 1, 0)
}

// Twenty equal requests of any type that arrive at once at three instances have one effect and one answer. A later one
// has the same answer, and another payload has none.
func TestEqualRequestsAreOne(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		var services []*order.Service
		var stores []*sqlstore.Store
		lease, units := memlock.New(memlock.Config{}), counter(t)
		for i := range 3 {
			stores = append(stores, open(t, url, fmt.Sprint("instance-", i)))
			services = append(services, order.NewService(stores[i], stock.NewStrategies(stock.Lockers{Redis: lease, Units: units}), order.Config{}))
		}
		ctx, s := t.Context(), stores[0]
		for sku, units := range map[string]int64{"conditional": 100, "for-update": 1, "optimistic": 100, "redis": 1, "redis-cohort": 1, "lua": 1} {
			create(t, s, sku, sku, units)
			placedOnce(t, services, stores, sku)
		}
		target := order.Target{ID: place(t, s, time.Minute, "conditional").ID}
		for route, do := range map[string]func(n int, once *idempotency.Request) (any, error){
			"extend": func(n int, once *idempotency.Request) (any, error) {
				target := target
				target.Key = once
				return services[n%3].Extend(ctx, target, time.Minute)
			},
			"restock": func(n int, once *idempotency.Request) (any, error) {
				return stores[n%3].Restock(ctx, "conditional", 5, once)
			},
			"refuse": func(n int, _ *idempotency.Request) (any, error) {
				return ask(ctx, services[n%3], order.Purchase{
					Customer: "c1", Items: []order.Item{{SKU: "for-update", Quantity: 1}}, Key: keyed("POST /orders", "sold out", ""),
				})
			},
		} {
			equal(t, 20, func(n int) (any, error) { return do(n, keyed("POST /"+route, "key", "")) })
		}
		if o, err := s.Order(ctx, target.ID, ""); err != nil || o.ExpiresAt.Sub(o.CreatedAt) != 2*time.Minute {
			t.Errorf("extended to %v, %v", o.ExpiresAt.Sub(o.CreatedAt), err)
		}
		pay := target
		pay.Key = keyed("POST /pay", "key", "")
		equal(t, 20, func(n int) (any, error) {
			o, changed, err := stores[n%3].Settle(ctx, pay, order.Confirmed, "p1")
			if err == nil && !changed {
				err = errors.New("neither paid nor replayed")
			}
			return o, err
		})
		pay.Key.Hash[0]++
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
		for _, w := range []stock.Update{stock.Conditional, stock.RowLock} {
			sku := fmt.Sprint("a", w)
			create(t, s, sku, "conditional", 5)
			with := func(quantity int64, key, payload string) *order.Request {
				r := request(quantity, sku)
				if key != "" {
					r.Key = keyed("POST /"+sku, key, payload)
				}
				return r
			}
			commit := func(batch ...*order.Request) {
				t.Helper()
				if err := s.Commit(ctx, &order.Batch{Claims: claim(sku, w, dlock.Fence{}), Requests: batch}); err != nil {
					t.Fatal(err)
				}
			}
			old := with(1, "old", "")
			commit(old)
			batch := []*order.Request{
				with(9, "too much", ""), with(9, "too much", ""), with(1, "new", ""), with(1, "", ""),
				with(1, "new", ""), with(1, "new", "other"), with(1, "old", ""), with(1, "old", "other"), with(1, "last", ""),
				with(9, "second", ""), with(1, "second", "less"), with(1, "second", "less"), with(1, "second", ""),
			}
			commit(batch...)
			var got []string
			for i, r := range batch {
				_, short := errors.AsType[*stock.ShortageError](r.Err)
				replay, replayed := errors.AsType[*idempotency.AnsweredError](r.Err)
				switch {
				case r.Err == nil:
					got = append(got, "placed")
				case short:
					got = append(got, "short")
				case replayed:
					got = append(got, "replayed")
					first := map[string]*order.Request{"new": batch[2], "old": old, "second": batch[10]}[r.Key.Scope.Key]
					if want, _ := answered(first.Order, nil); gocmp.Diff(want, replay.Answer) != "" {
						t.Errorf("%d: %+v, want %+v", i, replay.Answer, want)
					}
				case errors.Is(r.Err, idempotency.ErrReused):
					got = append(got, "reused")
				default:
					t.Error(r.Err)
				}
			}
			want := []string{"short", "short", "placed", "placed", "replayed", "reused", "replayed", "reused", "placed", "short", "placed", "replayed", "reused"}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("write %d (-want +got):\n%s", w, diff)
			}
			balanced(t, s, sku, 5, 0)
		}
	})
}

// keyReads counts the statements that read stored keys. It is a gorm plugin.
type keyReads struct{ atomic.Int64 }

// Name implements [gorm.Plugin].
func (*keyReads) Name() string { return "key reads" }

// Initialize implements [gorm.Plugin].
func (k *keyReads) Initialize(db *gorm.DB) error {
	return db.Callback().Row().Before("gorm:row").Register("key reads", func(tx *gorm.DB) {
		if strings.Contains(tx.Statement.SQL.String(), "FROM idempotency_keys") {
			k.Add(1)
		}
	})
}

// The stored answers of all requests of a batch take one statement.
func TestBatchReadsItsKeysAtOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		reads := new(keyReads)
		s := open(t, url, "one", reads)
		create(t, s, "a", "conditional", 100)
		batch := func() *order.Batch {
			b := &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{})}
			for n := range 50 {
				r := request(1, "a")
				r.Key = keyed("POST /a", fmt.Sprint(n), "")
				b.Requests = append(b.Requests, r)
			}
			return b
		}
		if err := s.Commit(t.Context(), batch()); err != nil {
			t.Fatal(err)
		}
		again := batch()
		reads.Store(0)
		if err := s.Commit(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		for _, r := range again.Requests {
			if _, replayed := errors.AsType[*idempotency.AnsweredError](r.Err); !replayed {
				t.Fatal(r.Err)
			}
		}
		if n := reads.Load(); n != 1 {
			t.Errorf("%d statements read 50 keys, want 1", n)
		}
	})
}

// pushes counts the notifications of timers.
type pushes struct {
	sqlstore.Scheduler

	n int
}

func (p *pushes) Schedule(ctx context.Context, tx timeout.Tx, timers ...timeout.Timer) (func(), error) {
	push, err := p.Scheduler.Schedule(ctx, tx, timers...)
	return func() { p.n++; push() }, err
}

// A batch that is rolled back, because one of its keys is stored, sends no notification of its timers.
func TestABatchWithAnOldKeyNotifiesTimersOnce(t *testing.T) {
	t.Parallel()
	plain := open(t, "sqlite:"+t.TempDir()+"/shop.db", "one")
	_, q := timed(t, plain)
	notified := &pushes{Scheduler: q}
	s := plain.WithTimers(notified)
	create(t, s, "a", "for-update", 5)
	commit := func(requests ...*order.Request) {
		t.Helper()
		if err := s.Commit(t.Context(), &order.Batch{Claims: claim("a", stock.RowLock, dlock.Fence{}), Requests: requests}); err != nil {
			t.Fatal(err)
		}
	}
	old, again, other := request(1, "a"), request(1, "a"), request(1, "a")
	old.Key = keyed("POST /orders", "k", "")
	again.Key = old.Key
	commit(old)
	commit(again, other)
	if !errors.As(again.Err, new(*idempotency.AnsweredError)) || other.Err != nil || notified.n != 2 {
		t.Errorf("notified %d times of the timers of two batches: %v, %v", notified.n, again.Err, other.Err)
	}
	balanced(t, s, "a", 2, 0)
}
