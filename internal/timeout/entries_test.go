package timeout_test

import (
	"testing"
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
		if err := r.mem.Schedule(t.Context(), kind, timeout.Base, entries); err != nil {
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
					push, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: c.kind, ID: id, Due: time.Now().Add(50 * time.Second)})
					if err != nil {
						t.Fatal(err)
					}
					push()
				}
				time.Sleep(30 * time.Second)
				if n, err := r.mem.Pending(t.Context(), c.kind, timeout.Base); err != nil || n != c.pending {
					t.Errorf("%d entries are pending, %v; want %d", n, err, c.pending)
				}
			})
		})
	}
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
