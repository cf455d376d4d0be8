package timeout_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/timeout"
)

// service is a lock service that can be cut off.
type service struct {
	dlock.Locker
	down atomic.Bool
}

func (s *service) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if s.down.Load() {
		return nil, errors.Join(dlock.ErrUncertain, errCut)
	}
	return s.Locker.TryAcquire(ctx, key)
}

func newService() *service {
	return &service{Locker: memlock.New(memlock.Config{TTL: 5 * time.Second})}
}

// One of many leads, and another one when it is gone.
func TestOneLeads(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b, s := newBook(), newService()
		var stops []func()
		for range 4 {
			_, stop := r.start(timeout.Config{Leader: s}, b.handle, timeout.Options{})
			stops = append(stops, stop)
		}
		q := r.queue(timeout.Config{Canary: true})
		for range 3 {
			time.Sleep(30 * time.Second)
			if r.count.leads() != 1 {
				t.Errorf("%d lead, want 1", r.count.leads())
			}
			if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: ids(9)[len(stops)], Due: time.Now()}); err != nil {
				t.Fatal(err)
			}
			stops[0]()
			stops = stops[1:]
		}
		time.Sleep(10 * time.Second)
		b.within(t, 3, 5*time.Second)
		b.once(t)
		if r.count.most != 1 {
			t.Errorf("%d led at once, want 1", r.count.most)
		}
	})
}

// Lock service and index may be the same server: with both away every instance scans, none
// leads, and the database alone fires each timer once.
func TestEveryInstanceScansWithoutLockServiceAndIndex(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b, s := newBook(), newService()
		s.down.Store(true)
		r.link.set(func(l *link) { l.down = true })
		var q *timeout.Queue
		for range 3 {
			q, _ = r.start(timeout.Config{Leader: s}, b.handle, timeout.Options{})
		}
		time.Sleep(10 * time.Second)
		for _, id := range ids(200) {
			r.schedule(q, time.Now(), id)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if r.count.most != 0 || r.count.repaired(timeout.RepairOverdue) != 200 {
			t.Errorf("%d led, %d timers were claimed, want 0 and 200", r.count.most, r.count.repaired(timeout.RepairOverdue))
		}
		s.down.Store(false)
		r.link.set(func(l *link) { l.down = false })
		time.Sleep(10 * time.Second)
		if r.count.leads() != 1 {
			t.Errorf("%d lead after the lock service has recovered, want 1", r.count.leads())
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

// A leader that cannot reach its database lets others try.
func TestLeaderWithoutDatabaseResigns(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b, s := newBook(), newService()
		cut := &cutStore{Store: r.store}
		leader, err := timeout.New(cut, r.mem, timeout.Config{Leader: s})
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Handle(kind, b.handle, timeout.Options{}); err != nil {
			t.Fatal(err)
		}
		r.run(leader)
		time.Sleep(2 * time.Second)
		q, _ := r.start(timeout.Config{Leader: s}, b.handle, timeout.Options{})
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

// A canary schedules and cancels. It claims nothing, scans nothing, and never leads.
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
		if _, err := q.Rebuild(t.Context(), kind); !errors.Is(err, timeout.ErrInvalid) {
			t.Errorf("Rebuild on a canary = %v, want ErrInvalid", err)
		}
		time.Sleep(time.Minute)
		r.stop()
		b.within(t, 200, 62*time.Second)
		b.once(t)
		if slices.Contains(r.link.log, "instance-1") || canary.len() != 0 || count.most != 0 || len(count.repairs) != 0 {
			t.Errorf("the canary claimed timers, or handled %d, led %d times, repaired %v", canary.len(), count.most, count.repairs)
		}
	})
}

// A partition keeps its timers to itself, until nobody has consumed it for 30 seconds.
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
		if r.count.repaired(timeout.RepairReassign) != 20 {
			t.Errorf("%d reassigned, want 20", r.count.repaired(timeout.RepairReassign))
		}
	})
}

// Index entries of a partition without consumers are dropped: those of its reassigned timers, and those of timers that
// another partition has cancelled. An index that does not answer meanwhile loses nothing else.
func TestOrphanedPartitionLeavesNoEntries(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		base, partition := newBook(), newBook()
		of, _ := r.start(timeout.Config{}, base.handle, timeout.Options{})
		old := timeout.Config{Partition: "release-1"}
		q, stop := r.start(old, partition.handle, timeout.Options{})
		r.schedule(q, time.Now().Add(time.Hour), ids(20)...)
		time.Sleep(time.Minute)
		pending := func(want int) {
			t.Helper()
			if n, err := r.mem.Pending(t.Context(), kind, old.Partition); err != nil || n != want {
				t.Errorf("the index has %d entries of the partition, %v; want %d", n, err, want)
			}
		}
		pending(20) // while its consumer lives
		stop()
		push, err := of.Cancel(t.Context(), nil, kind, ids(10)...)
		if err != nil {
			t.Fatal(err)
		}
		push()
		r.link.set(func(l *link) { l.down = true })
		time.Sleep(3 * time.Minute)
		r.link.set(func(l *link) { l.down = false })
		time.Sleep(3 * time.Minute)
		pending(0)

		// The partition has a consumer again, which fires its timers as if nothing had been.
		q, _ = r.start(old, partition.handle, timeout.Options{})
		time.Sleep(time.Minute) // until the store knows of it: what is scheduled before may be reassigned once more
		r.schedule(q, time.Now().Add(5*time.Minute), "new")
		time.Sleep(2 * time.Minute)
		pending(1)
		time.Sleep(time.Hour)
		partition.within(t, 1, time.Millisecond)
		base.within(t, 10, time.Millisecond)
		base.once(t)
	})
}

// The pace of the reconciler can be changed while it runs. At a slow pace the overdue scan finds an entry that a crash
// lost. At a fast pace the reconciler finds it before it is due.
func TestPaceOfTheReconciler(t *testing.T) {
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
		time.Sleep(time.Minute)
		crash("fast")
		b.within(t, 20, time.Millisecond)
		q.SetPace(20 * time.Second)
		time.Sleep(time.Minute)
		crash("slow")
		time.Sleep(time.Minute)
		if late := b.latest(); late < time.Second {
			t.Errorf("at the latest a timer fired %v after its due time; the pace has no effect", late)
		}
		b.within(t, 40, 10*time.Second)
	})
}
