package blackbox_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// TestConcurrentDuplicatesWait for the first one, and all give its answer.
func TestConcurrentDuplicatesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(func(context.Context) (order.Order, error) {
			time.Sleep(2 * time.Second)
			return someOrderOf("c1"), nil
		})
		s := newHandler(t, httpapi.Config{Orders: m})
		start := time.Now()
		var all sync.WaitGroup
		answers := make([]string, 20)
		replayed := make([]bool, len(answers))
		for i := range answers {
			all.Go(func() {
				status, header, body := s.do(post(basket, "Idempotency-Key", "k1"))
				answers[i], replayed[i] = fmt.Sprint(status, header.Get("Location"), string(body)), header.Get("Idempotent-Replayed") == "true"
			})
		}
		all.Wait()
		n := 0
		for i, answer := range answers {
			if answer != answers[0] || !strings.HasPrefix(answer, "201") {
				t.Errorf("answers %q and %q", answer, answers[0])
			}
			if replayed[i] {
				n++
			}
		}
		if m.work != 1 || n != len(answers)-1 || time.Since(start) != 2*time.Second {
			t.Errorf("%d orders, %d replays, %v", m.work, n, time.Since(start))
		}
	})
}

// TestNextDuplicateRunsAfterAFailure does the work when the first one ended without an answer that counts.
func TestNextDuplicateRunsAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		m := newMemory(func(context.Context) (order.Order, error) {
			time.Sleep(time.Second)
			if tries++; tries < 3 {
				return order.Order{}, stock.ErrBusy
			}
			return someOrderOf("c1"), nil
		})
		s := newHandler(t, httpapi.Config{Orders: m})
		var all sync.WaitGroup
		var mu sync.Mutex
		got := make(map[int]int)
		for range 6 {
			all.Go(func() {
				status, _, _ := s.do(post(basket, "Idempotency-Key", "k1"))
				mu.Lock()
				defer mu.Unlock()
				got[status]++
			})
		}
		all.Wait()
		if want := map[int]int{503: 2, 201: 4}; !cmp.Equal(want, got) || m.work != 3 {
			t.Errorf("%v after %d tries", got, m.work)
		}
	})
}

// TestThirdDuplicateWaitsForTheSecond: whoever comes while the second one is at work waits for that.
func TestThirdDuplicateWaitsForTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		atWork, tries := 0, 0
		m := newMemory(func(context.Context) (order.Order, error) {
			if atWork++; atWork > 1 {
				t.Error("two are at work")
			}
			tries++
			time.Sleep(2 * time.Second)
			if atWork--; tries < 3 {
				return order.Order{}, stock.ErrBusy
			}
			return someOrderOf("c1"), nil
		})
		s := newHandler(t, httpapi.Config{Orders: m})
		var all sync.WaitGroup
		for range 5 { // one a second
			all.Go(func() { s.do(post(basket, "Idempotency-Key", "k1")) })
			time.Sleep(time.Second)
		}
		all.Wait()
		if m.work != 3 {
			t.Errorf("%d tries", m.work)
		}
	})
}

// TestInFlight: whoever waits longer than it may is notified that the first one is still at work. Others
// are not kept by that.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(func(context.Context) (order.Order, error) {
			time.Sleep(time.Minute) // whatever its deadline says
			return someOrderOf("c1"), nil
		})
		s := newHandler(t, httpapi.Config{Orders: m})
		var first sync.WaitGroup
		first.Go(func() { s.do(post(basket, "Idempotency-Key", "k1")) })
		synctest.Wait()
		for prefer, want := range map[string]time.Duration{"": 9 * time.Second, "wait=5": 14 * time.Second} {
			start := time.Now()
			status, header, p := s.send(t, post(basket, "Idempotency-Key", "k1", "Prefer", prefer))
			if wantType(t, p, "request-in-flight"); status != http.StatusConflict || header.Get("Retry-After") != "1" || time.Since(start) != want {
				t.Errorf("%d %v after %v", status, header, time.Since(start))
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		s.do(post(basket, "Idempotency-Key", "k1").WithContext(gone))
		first.Wait()
		if status, header, _ := s.send(t, post(basket, "Idempotency-Key", "k1")); status != http.StatusCreated || header.Get("Idempotent-Replayed") != "true" || m.work != 1 {
			t.Errorf("then %d %v, %d orders", status, header, m.work)
		}
	})
}

// TestPanicReleasesTheKeyLock to the next one.
func TestPanicReleasesTheKeyLock(t *testing.T) {
	t.Parallel()
	broken := true
	m := newMemory(func(context.Context) (order.Order, error) {
		if broken {
			panic("a bug")
		}
		return someOrderOf("c1"), nil
	})
	s := newHandler(t, httpapi.Config{Orders: m})
	if status, _, _ := s.send(t, post(basket, "Idempotency-Key", "k1")); status != 500 {
		t.Errorf("%d", status)
	}
	broken = false
	if status, _, _ := s.send(t, post(basket, "Idempotency-Key", "k1")); status != 201 {
		t.Errorf("%d", status)
	}
}
