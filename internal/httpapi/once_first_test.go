package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// looking counts how often the stored keys are looked at.
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

// TestOrdersAreNotLookedForFirst unless there were repetitions lately; a repetition has its
// answer all the same, also when it is refused before it comes to the stored keys.
func TestOrdersAreNotLookedForFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused error
		m := &looking{memory: newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), refused })}
		s := newHandler(t, httpapi.Config{Orders: m})
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
		step("k3", 201, false, 1, 3)
		step("k2", 201, true, 1, 3)
		time.Sleep(31 * time.Second)
		step("k4", 201, false, 0, 4)
		refused = stock.ErrBusy
		step("k5", 503, false, 1, 5)
		step("k4", 201, true, 1, 6)
		step("k1", 201, true, 1, 6)
		step("k6", 503, false, 1, 7)
		time.Sleep(31 * time.Second)
		refused = &stock.ShortageError{Shortages: []stock.Shortage{{SKU: "s1", Requested: 2}}}
		step("k7", 409, false, 0, 8)
		step("k1", 201, true, 0, 8)
	})
}

// TestARepetitionThatEndsOtherwise has its answer all the same: when it waited for a guard until its time
// was over, and when nobody knows what became of it.
func TestARepetitionThatEndsOtherwise(t *testing.T) {
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
					time.Sleep(31 * time.Second) // the repetition before is forgotten
					got, header, body := s.do(post(c.body, "Idempotency-Key", c.key))
					if got != c.want || header.Get("Idempotent-Replayed") == "true" != (c.want == 201) {
						t.Errorf("%s: status %d, %v: %s", c.key, got, header, body)
					}
				}
			})
		})
	}
}
