package blackbox_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// The replies to all COMMITs are lost. By its key each request has one effect, and the stored answer.
func TestLostReplyIsResolvedByTheKey(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	ctx := t.Context()
	create(t, s, "a", "conditional", 10)
	r, queued := request(1, "a"), request(1, "a")
	r.Key, queued.Key = keyed("POST /orders", "key", ""), keyed("POST /orders", "queued", "")
	with := func(route string) order.Target {
		return order.Target{ID: r.Order.ID, Owner: "c1", Key: keyed(route, "key", "")}
	}
	extend, pay, restock, refuse := with("extend"), with("pay"), keyed("restock", "key", ""), keyed("refuse", "key", "")
	sold := &stock.ShortageError{Shortages: []stock.Shortage{{SKU: "a", Requested: 99}}}
	for _, c := range []struct {
		reply string
		once  *idempotency.Request
		do    func() (any, error)
	}{
		{"COMMIT", r.Key, func() (any, error) {
			err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}})
			return r.Order, errors.Join(err, r.Err)
		}},
		{"COMMIT", extend.Key, func() (any, error) {
			o, _, err := s.Extend(ctx, extend, time.Minute, 4*time.Hour)
			return o, err
		}},
		{"COMMIT", pay.Key, func() (any, error) {
			o, _, err := s.Settle(ctx, pay, order.Confirmed, "p1")
			return o, err
		}},
		{"COMMIT", restock, func() (any, error) { return s.Restock(ctx, "a", 5, restock) }},
		{"COMMIT", queued.Key, func() (any, error) {
			err := s.Enqueue(ctx, queued, time.Second)
			return queued.Order, err
		}},
		{"INSERT INTO idempotency_keys", refuse, func() (any, error) { return nil, cmp.Or[error](s.Refuse(ctx, refuse, refusal(sold)), sold) }},
	} {
		before := proxy.Dropped()
		proxy.DropReply(c.reply)
		got, _ := answered(c.do())
		stored, found, err := s.Answer(ctx, c.once)
		if err != nil || !found || gocmp.Diff(stored, got) != "" {
			t.Errorf("%s: answered %+v, stored %+v, %v, %v", c.once.Scope.Route, got, stored, found, err)
		}
		if proxy.Dropped() != before+1 {
			t.Errorf("%s: no reply was lost", c.once.Scope.Route)
		}
		if again, replayed := answered(c.do()); c.once != r.Key && c.once != queued.Key && (!replayed || gocmp.Diff(stored, again) != "") {
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

// Keys differ by customer, route and every byte.
func TestScopesOfKeys(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		place := func(once *idempotency.Request) error {
			r := request(1, "a")
			r.Key = once
			return errors.Join(s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}), r.Err)
		}
		other := keyed("POST /orders", "key", "")
		other.Scope.Customer = ""
		filler := "\x00"
		if strings.HasPrefix(url, "postgres:") { // whose texts have no such byte
			filler = "~"
		}
		longest := keyed(strings.Repeat(filler, 128), strings.Repeat(filler, 255), "")
		for i, once := range []*idempotency.Request{
			keyed("POST /orders", "key", ""), keyed("POST /orders", "Key", ""), keyed("POST /orders", "key ", ""),
			keyed("post /orders", "key", ""), other, longest,
		} {
			if err := place(once); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			if _, replayed := errors.AsType[*idempotency.AnsweredError](place(once)); !replayed {
				t.Errorf("%d again: no replay", i)
			}
		}
		balanced(t, s, "a", 6, 0)
		long := keyed("POST /orders", string(make([]byte, 256)), "")
		if err := place(long); err == nil {
			t.Error("a key of 256 bytes was stored")
		}
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
			if err := s.Refuse(ctx, keyed("POST /orders", fmt.Sprint(n), ""), refusal(sold)); err != nil {
				t.Fatal(err)
			}
			if err := raw.db.Exec("UPDATE idempotency_keys SET created_at = created_at - ? WHERE idem_key = ?",
				time.Duration(n)*time.Hour/time.Microsecond, fmt.Sprint(n)).Error; err != nil {
				t.Fatal(err)
			}
		}
		purge := func(age time.Duration, limit int, want int64) {
			t.Helper()
			if n, err := s.PurgeAnswers(ctx, nil, age, limit); err != nil || n != want {
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
		if _, err := s.PurgeAnswers(ended, nil, 0, 100); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A repetition has been rolled back when the database goes away, so that its outcome is known
// although nobody can look its answer up.
func TestDatabaseAwayAfterADuplicate(t *testing.T) {
	t.Parallel()
	behind, proxy := behindProxy(t, testbedtest.Database(t))
	g := newGate(gate{before: "SELECT * FROM orders"})
	s := open(t, behind, "gated", g)
	create(t, s, "a", "conditional", 10)
	place := func() error {
		r := request(1, "a")
		r.Key = keyed("POST /orders", "key", "")
		return s.Commit(t.Context(), &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}})
	}
	if err := place(); err != nil {
		t.Fatal(err)
	}
	again := make(chan error, 1)
	go func() { again <- place() }()
	wait(t, "the look-up after the duplicate", g.reached)
	proxy.Refuse()
	close(g.opened)
	if err := <-again; !errors.Is(err, stock.ErrUnavailable) || errors.Is(err, order.ErrOutcomeUnknown) {
		t.Errorf("away after a duplicate: %v, want ErrUnavailable", err)
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Open != 1 {
		t.Errorf("%+v %q", a, a.Broken())
	}
}
