package timeout_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// stallingStore takes its time before it prolongs rows: only then do they count an attempt without an error.
type stallingStore struct {
	*memStore
	takes    time.Duration
	prolongs chan struct{} // gets something when that begins
}

func (s stallingStore) Delay(ctx context.Context, kind string, later []timeout.Later) error {
	if slices.ContainsFunc(later, func(l timeout.Later) bool { return l.Attempt > 0 && l.Error == "" }) {
		select {
		case s.prolongs <- struct{}{}:
		default:
		}
		time.Sleep(s.takes)
	}
	return s.memStore.Delay(ctx, kind, later)
}

// What a handler says while the row of its timer is being prolonged is the last word:
// the row does not wait for the end of a claim that nobody has any more.
func TestProlongingIsNotTheLastWord(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() ([]timeout.Outcome, error){
		"retry":     func() ([]timeout.Outcome, error) { return []timeout.Outcome{timeout.Retry(time.Second, nil)}, nil },
		"give back": func() ([]timeout.Outcome, error) { return nil, timeout.ErrUnavailable },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) { failWhileProlonged(r, fail) })
		})
	}
}

func failWhileProlonged(r *rig, fail func() ([]timeout.Outcome, error)) {
	t := r.t
	r.link.set(func(l *link) { l.down = true }) // it is the sweep that finds the timer
	store := stallingStore{r.store, time.Second, make(chan struct{}, 1)}
	q, err := timeout.New(store, client{r.link, 1, "instance-1"}, timeout.Config{Observer: r.count})
	if err != nil {
		t.Fatal(err)
	}
	b := newBook()
	extended := make(chan error, 1) // by a handler that has returned
	var failed time.Time
	err = q.Handle(kind, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		if !failed.IsZero() {
			return b.handle(ctx, batch)
		}
		<-store.prolongs
		time.Sleep(store.takes / 2)
		failed = time.Now()
		time.AfterFunc(store.takes, func() { extended <- batch[0].Extend(t.Context()) })
		return fail()
	}, timeout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.run(q)
	r.schedule(q, time.Now(), "a")
	time.Sleep(time.Minute)
	c := b.of("a")
	if len(c) != 1 {
		t.Fatalf("calls after the one that failed: %+v, want one", c)
	}
	if wait := c[0].at.Sub(failed); wait > 5*time.Second {
		t.Errorf("tried again after %v, want the next sweep", wait)
	}
	if err := <-extended; !errors.Is(err, timeout.ErrLost) {
		t.Errorf("Extend after the handler has returned = %v, want ErrLost", err)
	}
	r.drained()
}
