package timeout_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/timeout"
)

// The end of Run waits for running handlers, and requeues the other timers at once.
func TestDrainFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		first, second := newBook(), newBook()
		slow := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			first.note(batch)
			time.Sleep(5 * time.Second)
			if len(batch) > 1 {
				panic("halve it")
			}
			return first.handle(ctx, batch)
		}
		r.store.blind = true
		q := r.queue(timeout.Config{})
		if err := q.Handle(kind, slow, timeout.Options{Batch: 8}); err != nil {
			t.Fatal(err)
		}
		r.schedule(q, time.Now(), ids(40)...) // before it runs, so that all batches are full
		stop := r.run(q)
		time.Sleep(6 * time.Second) // in the first halves of the first batches
		r.start(timeout.Config{}, second.handle, timeout.Options{})
		time.Sleep(time.Second)
		began, fired := time.Now(), first.len() // a timer that was a batch of its own
		stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the drain took %v, want what the running handler needs", took)
		}
		time.Sleep(200 * time.Millisecond)
		second.within(t, 40-fired, 11*time.Second)
		second.once(t)
		if n := first.len() - fired; n != 0 {
			t.Errorf("%d fired during the drain that had not begun", n)
		}
	})
}

// In a rolling restart other instances fire the requeued timers within milliseconds.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		h := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			time.Sleep(3 * time.Millisecond)
			return b.handle(ctx, batch)
		}
		var stops []func()
		for range 3 {
			_, stop := r.start(timeout.Config{}, h, timeout.Options{})
			stops = append(stops, stop)
		}
		q := r.queue(timeout.Config{Canary: true})
		r.run(q)
		all := ids(6000)
		var restarts sync.WaitGroup
		for i, id := range all {
			r.schedule(q, time.Now().Add(300*time.Millisecond), id)
			if i%1000 == 500 {
				k := i / 1000 % 3
				restarts.Go(stops[k])
				_, stops[k] = r.start(timeout.Config{}, h, timeout.Options{})
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		restarts.Wait()
		b.within(t, len(all), 50*time.Millisecond)
		b.once(t)
	})
}

// failures are what an observer has received.
type failures struct {
	timeout.NopObserver

	mu   sync.Mutex
	seen []string
}

func (f *failures) Failed(_, during string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, during+": "+err.Error())
}

// The context of a handler that does not end is cancelled, and other instances get its timers. A handler that hangs is no failure of
// the queue.
func TestDrainRequeuesTimersOfAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		r.store.blind = true
		never := make(chan struct{})
		defer close(never)
		var seen failures
		q := r.queue(timeout.Config{Drain: 3 * time.Second, Observer: &seen})
		cancelled := make(chan error, 3)
		hang := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			<-ctx.Done()
			cancelled <- context.Cause(ctx)
			<-never
			return nil, ctx.Err()
		}
		if err := q.Handle(kind, hang, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Run(ctx) }()
		synctest.Wait()
		r.schedule(q, time.Now(), ids(3)...)
		time.Sleep(time.Second)
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if got := strings.Join(seen.seen, "\n"); !strings.Contains(got, "drain: timeout: handlers have 3 timers in progress") {
			t.Errorf("the observer received %q, want how many timers the handlers have", got)
		}
		if took := time.Since(began); took > 4*time.Second+100*time.Millisecond || <-cancelled == nil {
			t.Errorf("the drain took %v, want 3 s and a last one", took)
		}
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(200 * time.Millisecond)
		b.within(t, 3, 6*time.Second)
	})
}

// Entries that were pushed last are in the index when Run returns.
func TestDrainFlushesEntries(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		q, stop := r.start(timeout.Config{}, newBook().handle, timeout.Options{})
		time.Sleep(time.Second)
		r.schedule(q, time.Now().Add(50*time.Second), ids(5000)...)
		stop()
		pending, err := r.mem.Pending(t.Context(), kind, timeout.Base)
		if err != nil || pending != 5000 {
			t.Errorf("%d in the index, %v, want 5000 pending", pending, err)
		}
	})
}
