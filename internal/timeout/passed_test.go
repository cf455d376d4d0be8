package timeout_test

import (
	"context"
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

// A sweep that claims in the database what the index has lent to the same process, and
// whose row is not read yet, leaves it to that process: neither waits for the other.
func TestSweepMeetsWhatIsBeingLoaded(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		const takes = 3500 * time.Millisecond // longer than the grace and the time between two sweeps
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
		sweeps := r.store.sweeps
		r.store.mu.Unlock()
		if sweeps == 0 {
			t.Error("nothing was swept: the test does not test what it should")
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
