package timeout_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// A claim of a cancelled timer finds no row, that of a dead one finds it
// dead, and both are forgotten.
func TestEntryWithoutTimerIsDropped(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		r.store.mu.Lock()
		r.store.rows[name{kind, "dead"}] = timeout.Row{
			Timer: timeout.Timer{Kind: kind, ID: "dead"}, Partition: timeout.Base, State: timeout.Dead,
		}
		r.store.mu.Unlock()
		at := time.Now().Add(time.Second)
		entries := []timeout.Entry{{ID: "ghost", At: at}, {ID: "dead", At: at}}
		if _, err := r.mem.Schedule(t.Context(), kind, timeout.Base, false, entries); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		pending, err := r.mem.Pending(t.Context(), kind, timeout.Base)
		if err != nil || pending != 0 || b.len() != 0 {
			t.Errorf("%d in the index, %d handled, %v", pending, b.len(), err)
		}
	})
}

// A local index gets no entries that its process would not claim.
func TestEntriesWithoutLocalConsumerAreNotPushed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg     timeout.Config
		kind    string
		pending int
	}{
		"consumer":     {timeout.Config{}, kind, 10},
		"canary":       {timeout.Config{Canary: true}, kind, 0},
		"unknown kind": {timeout.Config{}, "mail.remind", 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				t := r.t
				q, err := timeout.New(r.store, r.mem, c.cfg)
				if err != nil {
					t.Fatal(err)
				}
				if err := q.Handle(kind, newBook().handle, timeout.Options{}); err != nil {
					t.Fatal(err)
				}
				r.run(q)
				for _, id := range ids(10) {
					push, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: c.kind, ID: id, Due: time.Now().Add(time.Hour)})
					if err != nil {
						t.Fatal(err)
					}
					push()
				}
				time.Sleep(time.Minute)
				if n, err := r.mem.Pending(t.Context(), c.kind, timeout.Base); err != nil || n != c.pending {
					t.Errorf("%d entries are pending, %v; want %d", n, err, c.pending)
				}
			})
		})
	}
}

// Entries that are not due soon share calls of the index, and are there a moment later. An entry that is due soon is
// sent at once, with all others. So is a full chunk, and the rest when the queue ends.
func TestEntriesNotDueSoonAreBatched(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		q, stop := r.start(timeout.Config{}, newBook().handle, timeout.Options{})
		look := func(when string, pending, puts int) {
			t.Helper()
			synctest.Wait()
			n, err := r.mem.Pending(t.Context(), kind, timeout.Base)
			calls := 0
			r.link.set(func(l *link) { calls = l.puts })
			if err != nil || n != pending || calls != puts {
				t.Errorf("%s: %d entries after %d calls, %v; want %d after %d", when, n, calls, err, pending, puts)
			}
		}
		time.Sleep(time.Second) // the index is complete
		all := ids(2000)
		later := time.Now().Add(time.Hour)
		for _, id := range all[:50] {
			r.schedule(q, later, id)
			time.Sleep(time.Millisecond)
		}
		look("at first", 0, 0)
		time.Sleep(200 * time.Millisecond)
		look("a moment later", 50, 1)

		r.schedule(q, later, all[50])
		r.schedule(q, time.Now().Add(5*time.Second), all[51])
		look("with one that is due soon", 52, 2)

		r.schedule(q, later, all[52:1500]...)
		look("a full chunk", 1500, 4)

		r.schedule(q, later, all[1500])
		push, err := q.Cancel(t.Context(), nil, kind, all[0], all[1])
		if err != nil {
			t.Fatal(err)
		}
		push()
		asked := time.Now()
		stop()
		look("at the end", 1499, 5)
		if d := time.Since(asked); d > 0 {
			t.Errorf("the end took %v", d)
		}
	})
}

// They go on sharing calls when more come while a call is under way.
func TestEntriesAreBatchedUnderLoad(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		q, _ := r.start(timeout.Config{}, newBook().handle, timeout.Options{})
		time.Sleep(time.Second)
		r.link.set(func(l *link) { l.lag = time.Millisecond })
		later := time.Now().Add(time.Hour)
		for _, id := range ids(4000) {
			r.schedule(q, later, id)
			time.Sleep(time.Millisecond / 2)
		}
		time.Sleep(time.Second)
		pending, err := r.mem.Pending(t.Context(), kind, timeout.Base)
		calls := 0
		r.link.set(func(l *link) { calls = l.puts })
		if err != nil || pending != 4000 || calls > 40 {
			t.Errorf("%d entries after %d calls, %v", pending, calls, err)
		}
	})
}

// A timer that one instance has scheduled, and another one cancels before the entry is sent, leaves none. A timer that
// is scheduled again after it was cancelled has one.
func TestRemovalIsSentAfterEntriesOfOtherInstances(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		one, _ := r.start(timeout.Config{}, newBook().handle, timeout.Options{})
		two, _ := r.start(timeout.Config{}, newBook().handle, timeout.Options{})
		time.Sleep(time.Second)
		later := time.Now().Add(time.Hour)
		cancel := func(ids ...string) {
			push, err := two.Cancel(t.Context(), nil, kind, ids...)
			if err != nil {
				t.Fatal(err)
			}
			push()
		}
		all := ids(100)
		r.schedule(two, later, all...)
		time.Sleep(90 * time.Millisecond)
		r.schedule(one, later, "gone")
		cancel(append(all, "gone")...)
		r.schedule(two, later, all[0])
		time.Sleep(time.Second)
		if pending, err := r.mem.Pending(t.Context(), kind, timeout.Base); err != nil || pending != 1 || r.store.open() != 1 {
			t.Errorf("%d entries of %d timers, %v; want 1 of 1", pending, r.store.open(), err)
		}
	})
}

// The index may have any idea of the time: the database's clock decides.
func TestIndexClockSkew(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-time.Hour, -2 * time.Second, -50 * time.Millisecond, 50 * time.Millisecond, 2 * time.Second, time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			skewed(t, skew)
		})
	}
}

func skewed(t *testing.T, skew time.Duration) {
	t.Helper()
	bubbleWith(t, func() memindex.Config {
		return memindex.Config{Now: func() time.Time { return time.Now().Add(skew) }}
	}, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(time.Second)
		r.schedule(q, time.Now().Add(10*time.Second), ids(50)...)
		time.Sleep(20 * time.Second)
		limit := time.Millisecond
		if skew < 0 {
			limit = min(-skew, 4*time.Second)
		}
		b.within(t, 50, limit+time.Millisecond)
		b.once(t)
		r.stop()
		if r.count.claims > 50*5 {
			t.Errorf("%d claims for 50 timers: the index is asked without end", r.count.claims)
		}
	})
}
