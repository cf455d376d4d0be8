package timeout_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/timeout"
)

// A scheduler that dies between its commit and its push leaves a row alone.
func TestCrashBeforePushIsNotLate(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{22 * time.Second, 30 * time.Second, 15 * time.Minute} {
		t.Run(delay.String(), func(t *testing.T) {
			bubble(t, func(r *rig) {
				t := r.t
				b := newBook()
				q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
				time.Sleep(20500 * time.Millisecond) // a pass has just been made
				if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: "a", Due: time.Now().Add(delay)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(delay + time.Second)
				b.within(t, 1, time.Millisecond)
				r.stop()
				if len(r.count.repairs) != 0 {
					t.Errorf("repaired %v, want nothing", r.count.repairs)
				}
			})
		})
	}
}

// The index has the timers of the next minute. The others are rows alone, and a timer that is paid early never enters
// the index.
func TestIndexHasTheWindow(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		pending := func(when string, want, puts int) {
			t.Helper()
			synctest.Wait()
			n, err := r.mem.Pending(t.Context(), kind, timeout.Base)
			calls := 0
			r.link.set(func(l *link) { calls = l.puts })
			if err != nil || n != want || calls != puts {
				t.Errorf("%s: %d entries after %d calls, %v; want %d after %d", when, n, calls, err, want, puts)
			}
		}
		time.Sleep(100 * time.Millisecond)
		r.schedule(q, time.Now().Add(15*time.Minute), ids(500)...)
		pending("with the usual delay", 0, 0)
		r.schedule(q, time.Now().Add(59*time.Second), "soon")
		pending("with one that is due soon", 1, 1)
		time.Sleep(13 * time.Minute)
		pending("two minutes before the time", 0, 1+2) // two passes have put the one that was due soon again
		if err := q.Cancel(t.Context(), nil, kind, ids(100)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		pending("half a minute before the time", 400, 1+2+1)
		if err := q.Cancel(t.Context(), nil, kind, ids(200)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.within(t, 301, time.Millisecond)
		b.once(t)
		r.drained()
	})
}

// The window is longer if passes are rarer.
func TestSlowPaceLooksFurtherAhead(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		q.SetPace(time.Minute)
		start := time.Now()
		time.Sleep(time.Second)
		for n, id := range ids(20) { // without a push
			if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: id, Due: start.Add(5*time.Minute + time.Duration(5*n)*time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		b.within(t, 20, time.Millisecond)
	})
}

// Any instance makes the next pass when one dies, or fails: no timer waits for a leader.
func TestPassesOutliveInstances(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		var stops []func()
		for range 4 {
			_, stop := r.start(timeout.Config{}, b.handle, timeout.Options{})
			stops = append(stops, stop)
		}
		rows := r.queue(timeout.Config{Canary: true}) // which never runs, and so pushes nothing
		start := time.Now()
		for i, id := range ids(240) {
			if _, err := rows.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: id, Due: start.Add(time.Minute + time.Duration(i)*time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, stop := range stops[1:] {
			time.Sleep(61 * time.Second)
			stop()
		}
		time.Sleep(10 * time.Second)
		r.store.setDown(true)
		time.Sleep(time.Second)
		r.store.setDown(false)
		time.Sleep(3 * time.Minute)
		b.within(t, 240, 4*time.Second)
		b.once(t)
		late := 0
		for _, d := range b.late {
			if d > time.Millisecond {
				late++
			}
		}
		if late > 8 { // those of the second in which the database was away
			t.Errorf("%d timers were late", late)
		}
		r.link.set(func(l *link) {
			if l.passes > 20 { // 16 in five minutes, and one after each loss
				t.Errorf("%d passes in five minutes, want one in 20 s", l.passes)
			}
		})
	})
}

// The overdue scan fires a timer that is due before the next look-ahead pass.
func TestCrashBeforePushOfAShortDelay(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Minute)
		if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: "a", Due: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		b.within(t, 1, 4*time.Second)
	})
}

func TestSteadyStateRepairsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Second)       // the first claim reports an incomplete index
		for _, id := range ids(200) { // the commit takes a while, and so does the way from there to the push
			push, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: id, Due: time.Now().Add(7 * time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			push()
		}
		time.Sleep(time.Minute)
		b.within(t, 200, time.Millisecond)
		b.once(t)
		r.stop()
		for why, n := range r.count.repairs {
			t.Errorf("repaired %d by %s in a healthy system", n, why)
		}
	})
}

func TestIndexAwayWhileTimersComeIn(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Minute)
		r.link.set(func(l *link) { l.down = true })
		for _, id := range ids(100) {
			r.schedule(q, time.Now().Add(500*time.Millisecond), id)
			time.Sleep(100 * time.Millisecond)
		}
		r.schedule(q, time.Now().Add(time.Minute), "after")
		r.link.set(func(l *link) { l.down = false })
		time.Sleep(2 * time.Minute)
		b.within(t, 101, 4*time.Second)
		b.once(t)
		for _, id := range ids(90)[40:] {
			if late := b.late[id]; late > 1100*time.Millisecond {
				t.Errorf("%s fired %v late, long after the index had gone", id, late)
			}
		}
		if late := b.late["after"]; late > time.Millisecond {
			t.Errorf("%v late after the index was back", late)
		}
	})
}

// After the loss of all entries the next pass comes within a second, and puts the soonest ones first.
func TestWipeIsRebuiltSoonestFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Minute)
		const n = 30_000 // more than a page in each window
		for i, id := range ids(n) {
			r.schedule(q, time.Now().Add(time.Duration(i+1)*5*time.Minute/n), id)
		}
		for range 5 {
			time.Sleep(30 * time.Second)
			r.mem.Wipe()
		}
		time.Sleep(1100 * time.Millisecond)
		if pending, err := r.mem.Pending(t.Context(), kind, timeout.Base); err != nil || pending < 5800 {
			t.Errorf("the index has %d timers a second after a loss, %v; want those of a minute", pending, err)
		}
		time.Sleep(5 * time.Minute)
		b.within(t, n, 3*time.Second+10*time.Millisecond)
		b.once(t)
		if n := r.count.repaired(timeout.RepairOverdue); n > 5*110 {
			t.Errorf("%d timers were left to the overdue scan, want those of about a second for each loss", n)
		}
	})
}

// A replica that takes over has lost the last writes, and does not know it. The next pass writes them again.
func TestLostWritesAreFoundBeforeTheyAreDue(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Minute)
		r.link.set(func(l *link) { l.loses = true })
		r.schedule(q, time.Now().Add(30*time.Second), ids(6000)...)
		time.Sleep(time.Second)
		r.link.set(func(l *link) { l.loses = false })
		time.Sleep(time.Minute)
		b.within(t, 6000, time.Millisecond)
		b.once(t)
	})
}

// Messages only speed things up: without any, the poll learns of what is later than it.
func TestLostMessagesCauseNoDelay(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		r.link.mute = true
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		scheduler := r.queue(timeout.Config{Canary: true}) // no hand-off within the process
		r.run(scheduler)
		time.Sleep(time.Minute)
		for _, id := range ids(100) {
			r.schedule(scheduler, time.Now().Add(101*time.Millisecond), id)
			time.Sleep(time.Second)
		}
		b.within(t, 100, time.Millisecond)
	})
}

// A kind with a longer Poll costs less when idle. It delays no timer whose delay is longer than Poll, and others by at
// most Poll if messages are lost.
func TestLongerPollInterval(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		long, short := newBook(), newBook()
		r.link.mute = true
		c := newCounter()
		looks := func() (n int) {
			c.do(func() { n = c.wakers[timeout.WokenPoll] })
			return n
		}
		q := r.queue(timeout.Config{Observer: c})
		for kind, b := range map[string]*book{"long": long, "short": short} {
			if err := q.Handle(kind, b.handle, timeout.Options{Poll: time.Second}); err != nil {
				t.Fatal(err)
			}
		}
		r.run(q)
		scheduler := r.queue(timeout.Config{Canary: true}) // no hand-off within the process
		r.run(scheduler)
		time.Sleep(time.Minute)
		before := looks()
		time.Sleep(time.Minute)
		each := float64(looks()-before) / float64(len(r.mem.Shards("long", timeout.Base))+len(r.mem.Shards("short", timeout.Base)))
		if each < 55 || each > 80 {
			t.Errorf("a shard was asked %.0f times in a quiet minute, want once in 0.8 to 1 s", each)
		}
		for _, id := range ids(50) {
			for kind, delay := range map[string]time.Duration{"long": 1001 * time.Millisecond, "short": 10 * time.Millisecond} {
				push, err := scheduler.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: id, Due: time.Now().Add(delay)})
				if err != nil {
					t.Fatal(err)
				}
				push()
			}
			time.Sleep(3 * time.Second)
		}
		long.within(t, 50, time.Millisecond)
		short.within(t, 50, time.Second)
	})
}

func TestAllConsumersDownAcrossTheDueTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		scheduler := r.queue(timeout.Config{Canary: true})
		r.run(scheduler)
		start := time.Now()
		for i, id := range ids(1000) {
			r.schedule(scheduler, start.Add(time.Duration(i)*time.Second), id)
		}
		time.Sleep(time.Hour)
		var order []string
		var mu sync.Mutex
		r.start(timeout.Config{}, func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range batch {
				order = append(order, f.ID)
			}
			return b.handle(ctx, batch)
		}, timeout.Options{Batch: 1000})
		time.Sleep(3 * time.Second)
		b.within(t, 1000, time.Hour+3*time.Second)
		b.once(t)
		for i, id := range ids(1000) {
			if order[i] != id {
				t.Fatalf("timer %d of the backlog is %s, want the earliest first", i, order[i])
			}
		}
	})
}
