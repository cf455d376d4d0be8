package timeout_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// slowStore takes its time before it reads rows.
type slowStore struct {
	*memStore
	takes time.Duration
}

func (s slowStore) Load(ctx context.Context, kind string, ids []string) ([]timeout.Row, time.Time, error) {
	time.Sleep(s.takes)
	return s.memStore.Load(ctx, kind, ids)
}

// If the overdue scan claims timers that this process has claimed and is loading, the process handles them once, by the
// first claim.
func TestOverdueScanDuringLoadLeavesTimersToTheClaim(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		const takes = 3500 * time.Millisecond // longer than the grace and the time between two overdue scans
		q, err := timeout.New(slowStore{r.store, takes}, client{r.link, 1, "instance-1"}, timeout.Config{Observer: r.count})
		if err != nil {
			t.Fatal(err)
		}
		b := newBook()
		if err := q.Handle(kind, b.handle, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		r.run(q)
		time.Sleep(time.Second)
		r.schedule(q, time.Now().Add(time.Second), ids(50)...)
		time.Sleep(30 * time.Second)
		r.store.mu.Lock()
		scans := r.store.scans
		r.store.mu.Unlock()
		if scans == 0 {
			t.Error("nothing was claimed: the test does not test what it should")
		}
		b.within(t, 50, takes+time.Second)
		b.once(t)
		for _, c := range b.calls {
			if c.attempt != 1 {
				t.Errorf("%s fired as attempt %d, want 1", c.id, c.attempt)
			}
		}
	})
}

// The overdue scan claims the timers of a slow handler several times. If the handler then returns
// ErrUnavailable, no attempt counts, and the batch stays one.
func TestOverdueScanOfTimersInProgressCountsNoAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var away atomic.Bool
		away.Store(true)
		q, _ := r.start(timeout.Config{}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			if away.Load() {
				b.note(batch)
				time.Sleep(25 * time.Second)
				return nil, fmt.Errorf("the bank: %w", timeout.ErrUnavailable)
			}
			return b.handle(ctx, batch)
		}, timeout.Options{Attempts: 3})
		r.schedule(q, time.Now().Add(time.Second), ids(5)...)
		time.Sleep(5 * time.Minute)
		away.Store(false)
		time.Sleep(40 * time.Second)
		b.within(t, 5, 6*time.Minute)
		b.once(t)
		r.drained()
		r.store.mu.Lock()
		scans := r.store.scans
		r.store.mu.Unlock()
		if scans == 0 {
			t.Error("nothing was claimed: the test does not test what it should")
		}
		for _, c := range b.calls {
			if c.attempt != 1 || c.batch != 5 {
				t.Errorf("%+v, want a first attempt of a batch of 5", c)
			}
		}
	})
}
