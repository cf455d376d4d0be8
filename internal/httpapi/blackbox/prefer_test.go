package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// post returns a request to place an order with the given header.
func post(body string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, orders, strings.NewReader(body))
	r.Header.Set("Content-Type", jsonType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// TestPreferences gives what a client prefers to the domain, and says which of it had an
// effect. Nothing in Prefer is an error.
func TestPreferences(t *testing.T) {
	t.Parallel()
	second := time.Second
	for _, c := range []struct {
		fields  []string
		want    order.Preference
		applied string
	}{
		{nil, order.Preference{}, ""},
		{[]string{""}, order.Preference{}, ""},
		{[]string{"wait=5"}, order.Preference{Bounded: true, Wait: 5 * second}, "wait=5"},
		{[]string{"wait=0"}, order.Preference{Bounded: true}, "wait=0"},
		{[]string{"wait=30"}, order.Preference{Bounded: true, Wait: 30 * second}, "wait=30"},
		{[]string{"wait=31"}, order.Preference{Bounded: true, Wait: 30 * second}, "wait=30"},
		{[]string{"wait=99999999999999999999999"}, order.Preference{Bounded: true, Wait: 30 * second}, "wait=30"},
		{[]string{"Wait = 007"}, order.Preference{Bounded: true, Wait: 7 * second}, "wait=7"},
		{[]string{`wait="5"`}, order.Preference{Bounded: true, Wait: 5 * second}, "wait=5"},
		{[]string{"wait=5;foo=bar"}, order.Preference{Bounded: true, Wait: 5 * second}, "wait=5"},
		{[]string{"wait=-1"}, order.Preference{}, ""},
		{[]string{"wait=1.5"}, order.Preference{}, ""},
		{[]string{"wait=1s"}, order.Preference{}, ""},
		{[]string{"wait"}, order.Preference{}, ""},
		{[]string{"wait="}, order.Preference{}, ""},
		{[]string{"respond-async"}, order.Preference{Async: true}, ""},
		{[]string{"RESPOND-ASYNC"}, order.Preference{Async: true}, ""},
		{[]string{`respond-async=""`}, order.Preference{Async: true}, ""},
		{[]string{"respond-async=no"}, order.Preference{}, ""},
		{[]string{"respond-async, wait=10"}, order.Preference{Async: true, Bounded: true, Wait: 10 * second}, "wait=10"},
		{[]string{"wait=10", "respond-async"}, order.Preference{Async: true, Bounded: true, Wait: 10 * second}, "wait=10"},
		{[]string{"wait=1, wait=2", "wait=3"}, order.Preference{Bounded: true, Wait: second}, "wait=1"},
		{[]string{"wait=soon, wait=2"}, order.Preference{}, ""},
		{[]string{`foo="a, wait=9\", wait=9", wait=2`}, order.Preference{Bounded: true, Wait: 2 * second}, "wait=2"},
		{[]string{`foo="wait=2`}, order.Preference{}, ""},
		{[]string{"return=minimal, handling=strict, ,;,=,"}, order.Preference{}, ""},
	} {
		var domain recorder
		s := newHandler(t, httpapi.Config{Orders: &domain})
		r := post(basket)
		r.Header["Prefer"] = c.fields
		status, header, answer := s.send(t, r)
		if status != http.StatusCreated {
			t.Fatalf("%q: %d %v", c.fields, status, answer)
		}
		if diff := cmp.Diff(c.want, domain.patience); diff != "" {
			t.Errorf("%q: %s", c.fields, diff)
		}
		if got := header.Get("Preference-Applied"); got != c.applied {
			t.Errorf("%q: applied %q, want %q", c.fields, got, c.applied)
		}
	}
}

// TestQueuedOrders are answered 202, and respond-async had an effect only then.
func TestQueuedOrders(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Orders: fake{func(context.Context) (order.Order, error) {
		o := someOrderOf("c1")
		o.Status = order.Queued
		return o, nil
	}}})
	status, header, answer := s.send(t, post(basket, "Prefer", "respond-async, wait=2"))
	if status != http.StatusAccepted || answer["status"] != "QUEUED" {
		t.Errorf("%d %v", status, answer)
	}
	if got := header.Get("Preference-Applied"); got != "respond-async, wait=2" {
		t.Errorf("applied %q", got)
	}
	if got := header.Get("Location"); got != orders+"/"+someOrder {
		t.Errorf("Location is %q", got)
	}
}

// TestQueuedOrdersWithKeys say the same.
func TestQueuedOrdersWithKeys(t *testing.T) {
	t.Parallel()
	m := newMemory(func(context.Context) (order.Order, error) {
		o := someOrderOf("c1")
		o.Status = order.Queued
		return o, nil
	})
	s := newHandler(t, httpapi.Config{Orders: m, Stock: m})
	status, header, _ := s.send(t, post(basket, "Prefer", "respond-async", "Idempotency-Key", "k1"))
	if got := header.Get("Preference-Applied"); status != http.StatusAccepted || got != "respond-async" {
		t.Errorf("%d, applied %q", status, got)
	}
}

// TestRejectedOrders say why.
func TestRejectedOrders(t *testing.T) {
	t.Parallel()
	for _, why := range []order.Reason{order.OutOfStock, order.OverLimit, order.NotInTime} {
		s := newHandler(t, httpapi.Config{Orders: fake{func(context.Context) (order.Order, error) {
			o := someOrderOf("c1")
			o.Status, o.Reason = order.Rejected, why
			return o, nil
		}}})
		if got := s.must(t, 200, http.MethodGet, orders+"/"+someOrder, ""); got["status"] != "REJECTED" || got["reason"] != string(why) {
			t.Errorf("got %v", got)
		}
	}
}

// TestWaitZeroOnAHeldLockIsLockTimeout on a lock that is held is answered as busy, with what was preferred.
func TestWaitZeroOnAHeldLockIsLockTimeout(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Orders: failing(stock.ErrLockHeld)})
	status, header, p := s.send(t, post(basket, "Prefer", "wait=0"))
	if wantType(t, p, "lock-timeout"); status != http.StatusServiceUnavailable || header.Get("Preference-Applied") != "wait=0" {
		t.Errorf("%d %v %v", status, header, p)
	}
	s = newHandler(t, httpapi.Config{Orders: failing(stock.ErrFencesLost)})
	p = s.must(t, 503, http.MethodPost, orders, basket)
	if wantType(t, p, "lock-timeout"); !strings.Contains(fmt.Sprint(p["detail"]), "shop fence rebase") {
		t.Error(p)
	}
	s = newHandler(t, httpapi.Config{Orders: failing(order.ErrStopping)})
	wantType(t, s.must(t, 503, http.MethodPost, orders, basket), "draining")
}

// TestPreferenceWithoutEffectIsNotApplied are not said to have had one: an order waits for locks and for units, and for nothing else.
func TestPreferenceWithoutEffectIsNotApplied(t *testing.T) {
	t.Parallel()
	short := &stock.ShortageError{Shortages: []stock.Shortage{{SKU: "s1", Requested: 2}}}
	for _, c := range []struct {
		err     error
		status  int
		applied string
	}{
		{order.ErrConcurrencyLimit, 429, ""},
		{&order.UnknownSKUError{SKUs: []string{"s1"}}, 422, ""},
		{&order.LimitError{Limit: 1, Had: 1}, 409, ""},
		{stock.ErrLockAway, 503, ""},
		{fmt.Errorf("%w: %w", order.ErrNotWaiting, short), 409, ""},
		{short, 409, "wait=5"},
		{stock.ErrLockHeld, 503, "wait=5"},
		{order.ErrStopping, 503, "wait=5"},
	} {
		s := newHandler(t, httpapi.Config{Orders: failing(c.err)})
		status, header, p := s.send(t, post(basket, "Prefer", "wait=5"))
		if got := header.Get("Preference-Applied"); status != c.status || got != c.applied {
			t.Errorf("%v: %d %v, applied %q, want %q", c.err, status, p, got, c.applied)
		}
		if full := errors.Is(c.err, order.ErrNotWaiting); full != strings.Contains(fmt.Sprint(p["detail"]), "did not wait") {
			t.Errorf("%v: %v", c.err, p)
		}
	}
}

// TestPreferredWaitExtendsTheDeadline of the route, and of no other one.
func TestPreferredWaitExtendsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHandler(t, httpapi.Config{Orders: fake{func(ctx context.Context) (order.Order, error) {
			<-ctx.Done()
			return order.Order{}, context.Cause(ctx)
		}}})
		for prefer, want := range map[string]time.Duration{"": 9, "wait=0": 9, "wait=7": 16, "wait=300": 39, "respond-async": 9} {
			start := time.Now()
			if status, _, answer := s.send(t, post(basket, "Prefer", prefer)); status != http.StatusServiceUnavailable {
				t.Errorf("%d %v", status, answer)
			}
			if got := time.Since(start); got != want*time.Second {
				t.Errorf("%q took %v", prefer, got)
			}
		}
		start := time.Now()
		r := httptest.NewRequest(http.MethodGet, orders+"/"+someOrder, nil)
		r.Header.Set("Prefer", "wait=7")
		s.send(t, r)
		if got := time.Since(start); got != 9*time.Second {
			t.Errorf("reading took %v", got)
		}
	})
}

// TestWaitingOutlivesTheWriteTimeout of the server, on a real connection.
func TestWaitingOutlivesTheWriteTimeout(t *testing.T) {
	t.Parallel()
	const limit = 250 * time.Millisecond
	s := newHandler(t, httpapi.Config{Orders: fake{func(ctx context.Context) (order.Order, error) {
		<-time.After(2 * limit)
		return someOrderOf("c1"), ctx.Err()
	}}})
	server := httptest.NewUnstartedServer(s)
	server.Config = httpapi.NewServer(s, slog.New(slog.DiscardHandler))
	server.Config.WriteTimeout = limit
	server.Start()
	t.Cleanup(server.Close)
	ask := func(prefer string) (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+orders, strings.NewReader(basket))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", jsonType)
		r.Header.Set("Prefer", prefer)
		answer, err := server.Client().Do(r)
		if err != nil {
			return 0, err
		}
		defer func() { _ = answer.Body.Close() }()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, err
	}
	if status, err := ask("wait=1"); err != nil || status != http.StatusCreated {
		t.Errorf("with patience: %d %v", status, err)
	}
	if status, err := ask("wait=0"); err == nil {
		t.Errorf("without patience: %d, and the server's limit is without effect", status)
	}
}

// FuzzPrefer puts any text into Prefer. The order is placed in any case, and what was
// understood is said in a form that means the same.
func FuzzPrefer(f *testing.F) {
	for _, seed := range []string{
		"", "wait=5", "respond-async, wait=10", `foo="a,b\"";c=d, wait=1`, "wait=99999999999", "wait=-1", "wait;=5", `"`, "wait=5,wait=6", "=,;=,\t",
	} {
		f.Add(seed)
	}
	var domain recorder
	s := newHandler(f, httpapi.Config{Orders: &domain})
	ask := func(t *testing.T, prefer string) (order.Preference, string) {
		t.Helper()
		domain = recorder{}
		status, header, answer := s.send(t, post(basket, "Prefer", prefer))
		if status != http.StatusCreated || domain.calls != 1 {
			t.Fatalf("%q: %d %v", prefer, status, answer)
		}
		return domain.patience, header.Get("Preference-Applied")
	}
	f.Fuzz(func(t *testing.T, prefer string) {
		got, applied := ask(t, prefer)
		if got.Wait < 0 || got.Wait > 30*time.Second || got.Wait != 0 && !got.Bounded {
			t.Errorf("%q: %+v", prefer, got)
		}
		got.Async = false
		if again, _ := ask(t, applied); again != got {
			t.Errorf("%q means %+v, and %q means %+v", prefer, got, applied, again)
		}
	})
}
