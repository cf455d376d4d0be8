package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// memory is a domain that keeps answers as the store does.
type memory struct {
	fake

	mu      sync.Mutex
	work    int                                        // that was carried out
	answers map[idempotency.Scope]idempotency.Answer   // guarded by mu
	asked   map[idempotency.Scope]*idempotency.Request // guarded by mu
	hashes  map[idempotency.Scope][32]byte             // guarded by mu
}

func newMemory(do func(ctx context.Context) (order.Order, error)) *memory {
	return &memory{
		fake: fake{do}, answers: make(map[idempotency.Scope]idempotency.Answer),
		asked: make(map[idempotency.Scope]*idempotency.Request), hashes: make(map[idempotency.Scope][32]byte),
	}
}

func (m *memory) Answer(_ context.Context, r *idempotency.Request) (a idempotency.Answer, found bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, found = m.answers[r.Scope]; found && m.hashes[r.Scope] != r.Hash {
		return idempotency.Answer{}, false, idempotency.ErrReused
	}
	return a, found, nil
}

// settle stores the answer to an operation that succeeds. One that would find a stored answer is not carried out.
func (m *memory) settle(r *idempotency.Request, result any, err error) error {
	if r != nil && (err == nil || isConflict(err)) {
		known, found, reused := m.Answer(context.Background(), r)
		if found {
			return &idempotency.AnsweredError{Answer: known}
		}
		if reused != nil {
			return reused
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.work++
	if r == nil {
		return err
	}
	m.asked[r.Scope] = r
	if err == nil {
		m.hashes[r.Scope] = r.Hash
		m.answers[r.Scope], err = idempotency.Result(result)
	}
	return err
}

// isConflict reports whether err answers an order for good.
func isConflict(err error) bool {
	return errors.As(err, new(*stock.ShortageError)) || errors.As(err, new(*order.LimitError))
}

func (m *memory) Refuse(_ context.Context, r *idempotency.Request, a idempotency.Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[r.Scope], m.hashes[r.Scope] = a, r.Hash
	return nil
}

func (m *memory) Place(ctx context.Context, p order.Purchase) (order.Order, error) {
	o, err := m.do(ctx)
	return o, m.settle(p.Key, o, err)
}

func (m *memory) Pay(ctx context.Context, t order.Target, _ string) (order.Order, error) {
	o, err := m.do(ctx)
	return o, m.settle(t.Key, o, err)
}

func (m *memory) Cancel(ctx context.Context, t order.Target) (order.Order, error) {
	o, err := m.do(ctx)
	return o, m.settle(t.Key, o, err)
}

func (m *memory) Extend(ctx context.Context, t order.Target, _ time.Duration) (order.Order, error) {
	o, err := m.do(ctx)
	return o, m.settle(t.Key, o, err)
}

func (m *memory) Restock(ctx context.Context, _ string, _ int64, once *idempotency.Request) (stock.Level, error) {
	_, err := m.do(ctx)
	return someLevel, m.settle(once, someLevel, err)
}

// keyed is a good request for every operation that takes a key.
func keyed(key string) map[string]*http.Request {
	all := make(map[string]*http.Request)
	for _, op := range operations {
		if op.method != http.MethodPost {
			continue
		}
		all[op.path] = postKeyed(op.path, op.body, key)
	}
	return all
}

// possible reports whether the operation at path, which takes a key, can fail with err.
func possible(path string, err error) bool {
	placing := path == orders
	var (
		short   *stock.ShortageError
		limit   *order.LimitError
		unknown *order.UnknownSKUError
		state   *order.StateError
	)
	switch {
	case errors.As(err, &short), errors.As(err, &limit), errors.As(err, &unknown):
		return placing
	case errors.Is(err, order.ErrStopping): // only a new order waits for units
		return placing
	case errors.As(err, &state):
		return !placing && strings.HasPrefix(path, orders)
	}
	return !errors.Is(err, order.ErrInvalid) || !strings.HasSuffix(path, "/cancel")
}

// TestEveryFinalResponseIsReplayed byte for byte by every operation that takes a key, if it is final.
func TestEveryFinalResponseIsReplayed(t *testing.T) {
	t.Parallel()
	queued := someOrderOf("c1")
	queued.Status = order.Queued
	for name, c := range map[string]struct {
		order  order.Order
		err    error
		stored bool
	}{
		"success":   {someOrderOf("c1"), nil, true},
		"queued":    {queued, nil, true},
		"sold out":  {order.Order{}, &stock.ShortageError{Shortages: []stock.Shortage{{SKU: "s1", Requested: 2}}}, true},
		"limit":     {order.Order{}, &order.LimitError{SKU: "s1", Limit: 3, Had: 2}, true},
		"open":      {order.Order{}, &order.LimitError{Limit: 3, Had: 3}, true},
		"state":     {order.Order{}, &order.StateError{Order: someOrderOf("c1")}, false},
		"no SKU":    {order.Order{}, &order.UnknownSKUError{SKUs: []string{"s1"}}, false},
		"invalid":   {order.Order{}, order.ErrInvalid, false},
		"stopping":  {order.Order{}, order.ErrStopping, false},
		"in flight": {order.Order{}, idempotency.ErrInFlight, false},
		"busy":      {order.Order{}, stock.ErrBusy, false},
		"guarded":   {order.Order{}, stock.ErrLockHeld, false},
		"down":      {order.Order{}, stock.ErrUnavailable, false},
		"unknown":   {order.Order{}, order.ErrOutcomeUnknown, false},
		"a bug":     {order.Order{}, errors.New("disk on fire"), false},
	} {
		m := newMemory(func(context.Context) (order.Order, error) { return c.order, c.err })
		s := newHandler(t, httpapi.Config{Orders: m, Stock: m})
		first := make(map[string]string)
		for path, r := range keyed("k1") {
			if !possible(path, c.err) {
				continue
			}
			status, header, body := s.do(r)
			s.conforms(t, r, status, header, body)
			first[path] = fmt.Sprint(status, header["Location"], header["Content-Type"], string(body))
			if header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%s, %s: replayed at first", name, path)
			}
		}
		done := m.work
		for path, r := range keyed(`"k1"`) { // the same key
			if !possible(path, c.err) {
				continue
			}
			status, header, body := s.do(r)
			s.conforms(t, r, status, header, body)
			got := fmt.Sprint(status, header["Location"], header["Content-Type"], string(body))
			if diff := cmp.Diff(first[path], got); diff != "" {
				t.Errorf("%s, %s: %s", name, path, diff)
			}
			if replayed := header.Get("Idempotent-Replayed") == "true"; replayed != c.stored {
				t.Errorf("%s, %s: replayed %v", name, path, replayed)
			}
		}
		if again := m.work - done; (again == 0) != c.stored || again != 0 && again != len(first) {
			t.Errorf("%s: %d of %d operations were carried out again", name, again, len(first))
		}
	}
}

// TestConcurrencyLimitIsNotStored; only placing knows it.
func TestConcurrencyLimitIsNotStored(t *testing.T) {
	t.Parallel()
	m := newMemory(func(context.Context) (order.Order, error) { return order.Order{}, order.ErrConcurrencyLimit })
	s := newHandler(t, httpapi.Config{Orders: m})
	for i := range 2 {
		status, header, p := s.send(t, post(basket, "Idempotency-Key", "k1"))
		if wantType(t, p, "concurrency-limit"); status != http.StatusTooManyRequests || header.Get("Idempotent-Replayed") != "" || m.work != i+1 || len(m.answers) > 0 {
			t.Errorf("%d %v after %d, and %d are stored", status, header, m.work, len(m.answers))
		}
	}
}

// TestReplayFromTheDomain is what another instance was faster with.
func TestReplayFromTheDomain(t *testing.T) {
	t.Parallel()
	placed := fake{func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil }}
	_, _, want := newHandler(t, httpapi.Config{Orders: placed}).do(post(basket))
	answer, err := idempotency.Result(someOrderOf("c1"))
	if err != nil {
		t.Fatal(err)
	}
	s := newHandler(t, httpapi.Config{Orders: failing(fmt.Errorf("late: %w", &idempotency.AnsweredError{Answer: answer}))})
	status, header, got := s.do(post(basket, "Idempotency-Key", "k1", "Prefer", "wait=1"))
	if status != http.StatusCreated || string(got) != string(want) || header.Get("Location") != orders+"/"+someOrder ||
		header.Get("Idempotent-Replayed") != "true" || header.Get("Content-Type") != jsonType || header.Get("Preference-Applied") != "" {
		t.Errorf("%d %v %s", status, header, got)
	}
}

// TestScopes: the same key belongs to other requests with another customer, another order, and
// another operation.
func TestScopes(t *testing.T) {
	t.Parallel()
	m := newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil })
	s := newHandler(t, httpapi.Config{Orders: m, Stock: m})
	const other = "0198c5a2-7d10-7c3e-9b1f-3f2a6f1f9d02"
	for i, c := range []struct{ path, body string }{
		{orders, basket},
		{orders, strings.Replace(basket, "c1", "c2", 1)},
		{unknown + "/cancel", ""},
		{unknown + "/pay", `{"payment_id":"p1"}`},
		{orders + "/" + other + "/cancel", ""},
		{"/api/v1/skus/s1/restock", `{"quantity":1}`},
		{"/api/v1/skus/s2/restock", `{"quantity":1}`},
	} {
		if status, header, answer := s.send(t, postKeyed(c.path, c.body, "k1")); status >= 400 || header.Get("Idempotent-Replayed") != "" || m.work != i+1 {
			t.Errorf("%s %s: %d %v %v after %d", c.path, c.body, status, header, answer, m.work)
		}
	}
	if len(m.answers) != 7 {
		t.Errorf("%d scopes", len(m.answers))
	}
}

// TestKeyWithAnotherPayloadIsRefused: bodies with the same meaning are the same payload.
func TestKeyWithAnotherPayloadIsRefused(t *testing.T) {
	t.Parallel()
	m := newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil })
	s := newHandler(t, httpapi.Config{Orders: m})
	s.must(t, 201, http.MethodPost, orders, basket) // without a key
	for body, want := range map[string]int{
		basket: 201,
		"{ \"items\" : [{\"quantity\":2,\"sku\":\"\\u00731\"}],\n\"customer_id\":\"c1\" }": 201,
		strings.Replace(basket, ":2", ":1", 1):                                             422,
		strings.Replace(basket, "s1", "S1", 1):                                             422,
		strings.Replace(basket, "}]", "},"+`{"sku":"s1","quantity":2}]`, 1):                422,
	} {
		if len(m.answers) == 0 {
			s.send(t, post(basket, "Idempotency-Key", "k1"))
		}
		status, _, answer := s.send(t, post(body, "Idempotency-Key", "k1"))
		if status != want {
			t.Errorf("%s: %d %v", body, status, answer)
		}
		if want == 422 {
			wantType(t, answer, "idempotency-key-reused")
		}
	}
	if m.work != 2 {
		t.Errorf("%d orders", m.work)
	}
}
