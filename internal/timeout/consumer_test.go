package timeout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// The overdue scan takes the timers of a consumer that died, after its grace.
func TestConsumerDiesOverItsBatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q := r.queue(timeout.Config{Canary: true})
		r.run(q)
		r.schedule(q, time.Now().Add(time.Second), ids(100)...)
		time.Sleep(time.Second + time.Millisecond)
		s := r.mem.Shards(kind, timeout.Base)[0]
		if c, err := r.mem.Claim(t.Context(), s, 60); len(c.Timers) != 60 || err != nil {
			t.Fatalf("Claim = %d timers, %v", len(c.Timers), err)
		}
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Minute)
		b.within(t, 100, 4*time.Second)
		b.once(t)
		if n := r.count.repaired(timeout.RepairOverdue); n != 60 {
			t.Errorf("the overdue scan found %d timers, want 60", n)
		}
	})
}

// Timers whose consumer died after an overdue scan are retried one at a time: one of them
// may have killed it.
func TestTimersOfADeadConsumerAreRetriedAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q := r.queue(timeout.Config{Canary: true})
		r.run(q)
		r.schedule(q, time.Now(), ids(20)...)
		time.Sleep(time.Millisecond)
		r.dieScanning(20, 10*time.Second)
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(14 * time.Second)
		b.within(t, 20, 14*time.Second)
		b.once(t)
		for _, c := range b.calls {
			if c.batch != 1 || c.attempt != 2 {
				t.Errorf("%s came as attempt %d in a batch of %d, want the second one, alone", c.id, c.attempt, c.batch)
			}
		}
	})
}

// dieScanning claims n overdue timers for a consumer that dies.
func (r *rig) dieScanning(n int, lease time.Duration) {
	r.t.Helper()
	now := time.Now()
	rows, err := r.store.ClaimOverdue(r.t.Context(), kind, timeout.Base, now, now.Add(lease), n)
	if len(rows) != n || err != nil {
		r.t.Fatalf("Sweep = %d timers, %v; want %d", len(rows), err, n)
	}
}

// A timer that kills every consumer is dead after its last attempt, without another try.
func TestTimerThatKillsConsumersIsMarkedDead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q := r.queue(timeout.Config{Canary: true})
		r.run(q)
		r.schedule(q, time.Now(), "killer")
		time.Sleep(time.Millisecond)
		for range 3 {
			r.dieScanning(1, time.Second)
			time.Sleep(time.Second + time.Millisecond)
		}
		q, _ = r.start(timeout.Config{}, b.handle, timeout.Options{Attempts: 3})
		time.Sleep(5 * time.Second)
		row, err := q.Get(t.Context(), kind, "killer")
		if err != nil || row.State != timeout.Dead || b.len() != 0 {
			t.Errorf("%+v, %v, handled %d times; want it dead and never handled", row, err, b.len())
		}
	})
}

// A consumer that is paused resumes with a timer that somebody else has
// worked off: its effect is refused by the row.
func TestPausedConsumerHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var settled atomic.Int32
		decide := func(f timeout.Fired) timeout.Outcome { // as a conditional UPDATE of an order
			if settled.CompareAndSwap(0, 1) {
				b.effect(f)
			}
			return timeout.Done()
		}
		stalls := each(b, func(f timeout.Fired) timeout.Outcome {
			time.Sleep(20 * time.Second)
			return decide(f)
		})
		q := r.queue(timeout.Config{})
		if err := q.Handle(kind, stalls, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		running, pause := context.WithCancel(t.Context())
		go func() { _ = q.Run(running) }() // which extends the claim of the handler
		r.schedule(q, time.Now(), "a")
		time.Sleep(time.Second)
		pause() // a paused process scans no more
		r.start(timeout.Config{}, each(b, decide), timeout.Options{})
		time.Sleep(time.Minute)
		if len(b.of("a")) != 2 || b.effects["a"] != 1 {
			t.Errorf("handled %d times with %d effects, want 2 with 1", len(b.of("a")), b.effects["a"])
		}
		b.within(t, 1, 5*time.Second)
		r.drained()
	})
}

// The overdue scans of other processes skip the timers that a slow handler has from its own scan.
func TestSlowHandlerKeepsItsTimers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		h := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			time.Sleep(80 * time.Second) // eight times what an overdue scan claims rows for
			return b.handle(ctx, batch)
		}
		q, _ := r.start(timeout.Config{}, h, timeout.Options{})
		r.start(timeout.Config{}, h, timeout.Options{})
		time.Sleep(time.Second)
		r.link.set(func(l *link) { l.down = true })
		r.schedule(q, time.Now(), ids(5)...)
		time.Sleep(3 * time.Minute)
		b.within(t, 5, 85*time.Second)
		b.once(t)
	})
}

// The overdue scan of a process skips timers that are in progress there.
func TestSlowHandlerIsSkippedByItsOwnOverdueScan(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			time.Sleep(7 * time.Second)
			return b.handle(ctx, batch)
		}, timeout.Options{})
		r.schedule(q, time.Now(), ids(5)...)
		time.Sleep(time.Minute)
		b.within(t, 5, 8*time.Second)
		b.once(t)
	})
}

// An overdue scan may claim a timer that is in progress, and get the reply when that has been settled.
func TestOverdueScanSkipsWhatWasSettledBeforeItsReply(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		r.store.late = time.Second
		q, _ := r.start(timeout.Config{}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			time.Sleep(3500 * time.Millisecond)
			return b.handle(ctx, batch)
		}, timeout.Options{})
		r.schedule(q, time.Now(), ids(5)...)
		time.Sleep(time.Minute)
		b.once(t)
		r.store.mu.Lock()
		defer r.store.mu.Unlock()
		if r.store.scans == 0 {
			t.Error("no scan has claimed a timer: the test proves nothing")
		}
	})
}

// Claims are limited to free slots: what nobody can begin with stays in the index.
func TestSlowHandlerLimitsClaims(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var now, most atomic.Int32
		h := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return b.handle(ctx, batch)
		}
		q, _ := r.start(timeout.Config{}, h, timeout.Options{Batch: 10})
		r.schedule(q, time.Now(), ids(300)...)
		time.Sleep(1500 * time.Millisecond)
		if n, err := r.mem.Pending(t.Context(), kind, timeout.Base); err != nil || n < 220 {
			t.Errorf("Pending = %d, %v; want at most 40 claimed in each second", n, err)
		}
		time.Sleep(time.Minute)
		b.within(t, 300, 12*time.Second)
		b.once(t)
		if most.Load() != 4 {
			t.Errorf("%d handlers at once, want 4", most.Load())
		}
	})
}

// A burst is drained in full batches without waiting for a poll between them.
func TestBurstOfOneMoment(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		r.schedule(q, time.Now().Add(time.Second), ids(20_000)...)
		time.Sleep(2 * time.Second)
		b.within(t, 20_000, time.Millisecond)
		b.once(t)
	})
}
