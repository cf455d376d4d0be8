package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"example.com/shop/internal/events"
	"example.com/shop/internal/platform/testbed/testbedtest"
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

// learn keeps the state of an order. Events of several instances arrive in any order, so a final state stays.
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
			_ = w.watch(ctx, url) // the next one continues
		}
	})
	testbedtest.Eventually(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	return func() {
		stop()
		group.Wait()
	}
}

// once watches one stream, and returns a function that waits for its end and returns what that was.
func (w *page) once(t *testing.T, url string) (end func() error) {
	t.Helper()
	ends := make(chan error, 1)
	go func() { ends <- w.watch(t.Context(), url) }()
	testbedtest.Eventually(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	return func() (err error) {
		t.Helper()
		testbedtest.Eventually(t, "the stream has ended", func() bool {
			select {
			case err = <-ends:
				return true
			default:
				return false
			}
		})
		return err
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
