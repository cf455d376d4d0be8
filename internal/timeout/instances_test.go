package timeout_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// Without the index the database alone fires each timer, once.
func TestEveryInstanceScansWithoutTheIndex(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		r.link.set(func(l *link) { l.down = true })
		var q *timeout.Queue
		for range 3 {
			q, _ = r.start(timeout.Config{}, b.handle, timeout.Options{})
		}
		time.Sleep(10 * time.Second)
		for _, id := range ids(200) {
			r.schedule(q, time.Now(), id)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if n := r.count.repaired(timeout.RepairOverdue); n != 200 {
			t.Errorf("%d timers were claimed by overdue scans, want 200", n)
		}
		b.within(t, 200, 4*time.Second)
		b.once(t)
	})
}

// cutStore is the database as an instance has it that cannot reach it any more.
type cutStore struct {
	timeout.Store
	down atomic.Bool
}

func (s *cutStore) Now(ctx context.Context) (time.Time, error) {
	if s.down.Load() {
		return time.Time{}, errCut
	}
	return s.Store.Now(ctx)
}

func (s *cutStore) Load(ctx context.Context, kind string, ids []string) ([]timeout.Row, time.Time, error) {
	if s.down.Load() {
		return nil, time.Time{}, errCut
	}
	return s.Store.Load(ctx, kind, ids)
}

// An instance that cannot reach its database leaves its passes and scans to others.
func TestInstanceWithoutDatabaseIsReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		cut := &cutStore{Store: r.store}
		alone, err := timeout.New(cut, r.mem, timeout.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := alone.Handle(kind, b.handle, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		r.run(alone)
		time.Sleep(2 * time.Second)
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		time.Sleep(2 * time.Second)
		cut.down.Store(true)
		time.Sleep(10 * time.Second)
		if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: "a", Due: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		b.within(t, 1, 5*time.Second)
	})
}

// A canary schedules and cancels. It claims nothing, scans nothing, and makes no passes.
func TestCanaryClaimsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b, canary := newBook(), newBook()
		count := newCounter()
		q, _ := r.start(timeout.Config{Canary: true, Observer: count}, canary.handle, timeout.Options{})
		r.schedule(q, time.Now().Add(time.Second), ids(100)...)
		time.Sleep(time.Minute)
		if canary.len() != 0 || r.store.open() != 100 {
			t.Fatalf("the canary handled %d timers, %d are open", canary.len(), r.store.open())
		}
		r.start(timeout.Config{}, b.handle, timeout.Options{})
		r.schedule(q, time.Now().Add(time.Second), ids(200)[100:]...)
		time.Sleep(time.Minute)
		r.mem.Wipe()
		time.Sleep(time.Minute)
		r.stop()
		b.within(t, 200, 62*time.Second)
		b.once(t)
		if slices.Contains(r.link.log, "instance-1") || canary.len() != 0 || len(count.repairs) != 0 {
			t.Errorf("the canary claimed timers, or handled %d, repaired %v", canary.len(), count.repairs)
		}
	})
}

// A partition keeps its timers to itself, until no instance has consumed it for 30 seconds. Consumers of the base partition
// write no heartbeats, as they have no reader.
func TestOrphanedPartitionIsReassigned(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		base, partition := newBook(), newBook()
		r.start(timeout.Config{}, base.handle, timeout.Options{})
		q, stop := r.start(timeout.Config{Partition: "canary-2"}, partition.handle, timeout.Options{})
		time.Sleep(time.Minute)
		r.schedule(q, time.Now().Add(time.Second), ids(10)[5:]...)
		r.schedule(q, time.Now().Add(time.Minute), ids(5)...) // its consumers say that they live
		time.Sleep(61 * time.Second)
		partition.within(t, 10, time.Millisecond)
		r.schedule(q, time.Now().Add(2*time.Minute), ids(30)[10:20]...)
		r.schedule(q, time.Now().Add(2*time.Second), ids(30)[20:]...)
		stop()
		time.Sleep(5 * time.Minute)
		if partition.len() != 10 || base.len() != 20 {
			t.Errorf("the partition fired %d, base %d, want 10 and 20", partition.len(), base.len())
		}
		for _, id := range ids(30)[10:20] {
			if late := base.late[id]; late > time.Millisecond {
				t.Errorf("%s was %v late, reassigned long before", id, late)
			}
		}
		base.within(t, 20, time.Minute)
		base.once(t)
		if beats := r.store.heartbeats(); len(beats) != 1 || beats[0] != "canary-2" {
			t.Errorf("heartbeats in %v", beats)
		}
		if r.count.repaired(timeout.RepairReassign) != 20 {
			t.Errorf("%d reassigned, want 20", r.count.repaired(timeout.RepairReassign))
		}
	})
}

// The pace of the passes can be changed while they run. At a slow pace the overdue scan finds an entry that a crash
// lost. At a fast pace a pass puts it before it is due.
func TestPaceOfThePasses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b := newBook()
		q, _ := r.start(timeout.Config{}, b.handle, timeout.Options{})
		crash := func(prefix string) {
			for _, id := range ids(20) {
				if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: prefix + id, Due: time.Now().Add(5 * time.Second)}); err != nil {
					t.Fatal(err) // and nobody pushes it
				}
				time.Sleep(13 * time.Second)
			}
		}
		q.SetPace(2 * time.Second)
		time.Sleep(time.Minute)
		crash("fast")
		b.within(t, 20, time.Millisecond)
		q.SetPace(30 * time.Second)
		time.Sleep(time.Minute)
		crash("slow")
		time.Sleep(time.Minute)
		if late := b.latest(); late < time.Second {
			t.Errorf("at the latest a timer fired %v after its due time; the pace has no effect", late)
		}
		b.within(t, 40, 4*time.Second)
	})
}
