package timeout_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// call is one timer in one call of a handler.
type call struct {
	id      string
	at      time.Time
	attempt int
	batch   int // how many were in the call
}

// book records what a handler got, and decides as an order does: the first to come has an effect.
type book struct {
	mu      sync.Mutex
	calls   []call
	effects map[string]int
	late    map[string]time.Duration // of the effect
}

func newBook() *book { return &book{effects: map[string]int{}, late: map[string]time.Duration{}} }

// handle is a handler that always succeeds.
func (b *book) handle(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
	b.note(batch)
	out := make([]timeout.Outcome, len(batch))
	for i, f := range batch {
		b.effect(f)
		out[i] = timeout.Done()
	}
	return out, nil
}

func (b *book) note(batch []timeout.Fired) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range batch {
		b.calls = append(b.calls, call{f.ID, time.Now(), f.Attempt, len(batch)})
	}
}

func (b *book) effect(f timeout.Fired) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.effects[f.ID]++; b.effects[f.ID] == 1 {
		b.late[f.ID] = time.Since(f.Due)
	}
}

// of returns the calls for one timer.
func (b *book) of(id string) []call {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []call
	for _, c := range b.calls {
		if c.id == id {
			out = append(out, c)
		}
	}
	return out
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.effects)
}

// within fails unless each of n timers has had its effect, none early and none later than limit.
func (b *book) within(t *testing.T, n int, limit time.Duration) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.effects) != n {
		t.Errorf("%d timers have fired, want %d", len(b.effects), n)
	}
	for id, late := range b.late {
		if late < 0 || late > limit {
			t.Errorf("%s fired %v after its due time, want 0 to %v", id, late, limit)
		}
	}
}

// latest returns how late the latest of all was.
func (b *book) latest() (latest time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, late := range b.late {
		latest = max(latest, late)
	}
	return latest
}

// once fails if a timer was handled more than once.
func (b *book) once(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, n := range b.effects {
		if n != 1 {
			t.Errorf("%s was handled %d times", id, n)
		}
	}
}

// counter is an observer that counts.
type counter struct {
	timeout.NopObserver

	mu       sync.Mutex
	dropped  int
	claims   int
	returned int
	repairs  map[timeout.Reason]int
	verdicts map[timeout.Verdict]int
	wakers   map[timeout.Waker]int
	fired    []time.Duration
	errs     []error
}

func newCounter() *counter {
	return &counter{
		repairs: map[timeout.Reason]int{}, verdicts: map[timeout.Verdict]int{}, wakers: map[timeout.Waker]int{},
	}
}

func (c *counter) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *counter) EntriesDropped(_ string, n int)   { c.do(func() { c.dropped += n }) }
func (c *counter) Nacked(_ string, n int)           { c.do(func() { c.returned += n }) }
func (c *counter) Woken(_ string, by timeout.Waker) { c.do(func() { c.wakers[by]++ }) }
func (c *counter) Claimed(_ string, n int)          { c.do(func() { c.claims += n }) }
func (c *counter) Failed(_ string, _ string, err error) {
	c.do(func() { c.errs = append(c.errs, err) })
}

func (c *counter) Repaired(_ string, why timeout.Reason, n int) {
	c.do(func() { c.repairs[why] += n })
}

func (c *counter) Settled(_ string, v timeout.Verdict, n int) { c.do(func() { c.verdicts[v] += n }) }

func (c *counter) Fired(_ string, late time.Duration, _ timeout.Fired) {
	c.do(func() { c.fired = append(c.fired, late) })
}

func (c *counter) repaired(why timeout.Reason) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.repairs[why]
}
