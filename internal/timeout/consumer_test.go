package timeout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// A consumer that dies with timers in hand answers for none of them. The sweep
// takes them after its grace, long before their lease ends.
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
		if c, err := r.mem.Claim(t.Context(), s, 60, 30*time.Second); len(c.Timers) != 60 || err != nil {
			t.Fatalf("Claim = %d timers, %v", len(c.Timers), err)
		}
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Minute)
		b.within(t, 100, 4*time.Second)
		b.once(t)
		if s, err := r.mem.Stats(t.Context(), kind, timeout.Base); s.Leased != 0 || err != nil {
			t.Errorf("%+v in the index, %v, want nothing lent", s, err)
		}
	})
}

// Without the sweep the end of the lease brings them back, each alone: one of them
// may be what killed the consumer.
func TestWhatAConsumerDiedOverComesBackAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q := r.queue(timeout.Config{Canary: true})
		r.run(q)
		r.schedule(q, time.Now(), ids(20)...)
		time.Sleep(time.Millisecond)
		s := r.mem.Shards(kind, timeout.Base)[0]
		if c, err := r.mem.Claim(t.Context(), s, 20, 10*time.Second); len(c.Timers) != 20 || err != nil {
			t.Fatalf("Claim = %d timers, %v", len(c.Timers), err)
		}
		r.start(timeout.Config{}, b.handle, timeout.Options{Grace: time.Hour})
		time.Sleep(11 * time.Second)
		b.within(t, 20, 11*time.Second)
		b.once(t)
		for _, c := range b.calls {
			if c.batch != 1 || c.attempt != 2 {
				t.Errorf("%s came as attempt %d in a batch of %d, want the second one, alone", c.id, c.attempt, c.batch)
			}
		}
	})
}

// What kills every consumer is dead after its last attempt, without being tried once more.
func TestWhatKillsEveryConsumerIsBuried(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q := r.queue(timeout.Config{Canary: true})
		r.run(q)
		r.schedule(q, time.Now(), "killer")
		time.Sleep(time.Millisecond)
		s := r.mem.Shards(kind, timeout.Base)[0]
		for range 3 {
			if c, err := r.mem.Claim(t.Context(), s, 1, time.Second); len(c.Timers) != 1 || err != nil {
				t.Fatalf("Claim = %d timers, %v", len(c.Timers), err)
			}
			time.Sleep(time.Second)
		}
		q, _ = r.start(timeout.Config{}, b.handle, timeout.Options{Grace: time.Hour, Attempts: 3})
		time.Sleep(5 * time.Second)
		row, err := q.Get(t.Context(), kind, "killer")
		if err != nil || row.State != timeout.Buried || b.len() != 0 {
			t.Errorf("%+v, %v, handled %d times; want it dead and never handled", row, err, b.len())
		}
	})
}

// A consumer that sleeps through its lease wakes up to a timer that somebody else has
// worked off: its effect is refused by the row, its ack ends nothing.
func TestStalledConsumerHasNoSecondEffect(t *testing.T) {
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
		o := timeout.Options{Lease: 3 * time.Second, Grace: time.Hour}
		stalls := each(b, func(f timeout.Fired) timeout.Outcome {
			time.Sleep(20 * time.Second)
			r.link.set(func(l *link) { l.frail[1] = false })
			return decide(f)
		})
		q, _ := r.start(timeout.Config{}, stalls, o)
		r.schedule(q, time.Now(), "a")
		time.Sleep(time.Second)
		r.link.set(func(l *link) { l.frail[1] = true })
		r.start(timeout.Config{}, each(b, decide), o)
		time.Sleep(time.Minute)
		r.stop()
		if len(b.of("a")) != 2 || b.effects["a"] != 1 {
			t.Errorf("handled %d times with %d effects, want 2 with 1", len(b.of("a")), b.effects["a"])
		}
		if r.count.stale != 1 {
			t.Errorf("%d stale acks, want 1", r.count.stale)
		}
	})
}

// A slow handler keeps what it has in hand: from the index, and, if it has it from a
// sweep, from the sweeps of others.
func TestSlowHandlerKeepsItsTimers(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		bubble(t, func(r *rig) {
			t := r.t
			b := newBook()
			o := timeout.Options{Lease: time.Second}
			if !away {
				o.Grace = time.Hour // else another process sweeps what is more than 2 s late
			}
			h := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
				time.Sleep(8 * time.Second) // less than the 10 leases that a handler may take
				return b.handle(ctx, batch)
			}
			q, _ := r.start(timeout.Config{}, h, o)
			r.start(timeout.Config{}, h, o)
			time.Sleep(time.Second)
			r.link.set(func(l *link) { l.down = away }) // then the sweep has them in hand
			r.schedule(q, time.Now(), ids(5)...)
			time.Sleep(time.Minute)
			b.within(t, 5, 13*time.Second)
			b.once(t)
		})
	}
}

// The sweep of a process leaves alone what the process has in hand itself.
func TestSlowHandlerIsNotJoinedByItsOwnSweep(t *testing.T) {
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

// Claims are limited to free slots: what nobody can begin with stays in the index.
func TestNoPileUpBehindASlowHandler(t *testing.T) {
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
		q, _ := r.start(timeout.Config{}, h, timeout.Options{Batch: 10, Concurrency: 3, Grace: time.Hour})
		r.schedule(q, time.Now(), ids(300)...)
		time.Sleep(1500 * time.Millisecond)
		s, err := r.mem.Stats(t.Context(), kind, timeout.Base)
		if err != nil || s.Leased > 30 {
			t.Errorf("%+v in the index, %v, want at most 30 lent", s, err)
		}
		time.Sleep(time.Minute)
		b.within(t, 300, 12*time.Second)
		b.once(t)
		if most.Load() != 3 {
			t.Errorf("%d handlers at once, want 3", most.Load())
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
