package timeout_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/timeout"
)

// vacantAfter is how long after its last work a leader counts as one that has gone.
const vacantAfter = 3 * time.Second

// memRoles keeps who leads in memory.
type memRoles struct {
	mu    sync.Mutex
	owner string
	led   time.Time
	taken int
}

func (m *memRoles) ClaimRole(_ context.Context, _ string, t timeout.Term) (timeout.LeaderToken, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := t.Err(); err != nil {
		return nil, err
	}
	mine := t.Fence().Owner
	m.owner, m.led = mine, time.Now()
	m.taken++
	return func(context.Context, timeout.Tx) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.owner != mine {
			return fmt.Errorf("the role of %s: %w", mine, dlock.ErrFenced)
		}
		m.led = time.Now()
		return nil
	}, nil
}

func (m *memRoles) VacantRole(string) timeout.LeaderToken {
	return func(context.Context, timeout.Tx) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.owner != "" && time.Since(m.led) < vacantAfter {
			return timeout.ErrLeaderActive
		}
		return nil
	}
}

// supersede gives the role to another leader.
func (m *memRoles) supersede() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owner = "somebody else"
}

// A superseded leader stops scanning and reconciling, and resigns. It does not claim the role
// again in the same term.
func TestSupersededLeaderStops(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b, s, roles := newBook(), newService(), new(memRoles)
		r.link.frail[1] = true // only an overdue scan fires anything
		q, _ := r.start(timeout.Config{Leader: s, Roles: roles}, b.handle, timeout.Options{})
		q.SetPace(time.Hour) // the overdue scan has to find out
		time.Sleep(2 * time.Second)
		r.schedule(q, time.Now(), "a")
		time.Sleep(5 * time.Second)
		if b.len() != 1 || r.count.leads() != 1 || roles.taken != 1 {
			t.Fatalf("%d fired, %d lead, the leader role was taken %d times", b.len(), r.count.leads(), roles.taken)
		}
		roles.supersede()
		if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: "b", Due: time.Now()}); err != nil {
			t.Fatal(err)
		}
		before := r.count.repaired(timeout.RepairOverdue)
		time.Sleep(4 * time.Second)
		if n := r.count.leads(); n != 0 || b.len() != 1 || r.count.repaired(timeout.RepairOverdue) != before || r.count.repaired(timeout.RepairLookAhead) != 0 {
			t.Errorf("%d lead, %d fired, repaired %v", n, b.len(), r.count.repairs)
		}
		time.Sleep(10 * time.Second) // elected again, in a term of its own
		if b.len() != 2 || r.count.leads() != 1 || roles.taken != 2 {
			t.Errorf("%d fired, %d lead, the leader role was taken %d times", b.len(), r.count.leads(), roles.taken)
		}
		b.once(t)
	})
}

// The reconciler resigns, too: while the kind is paused there are no overdue scans.
func TestSupersededReconcilerStops(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		roles := new(memRoles)
		r.start(timeout.Config{Leader: newService(), Roles: roles}, newBook().handle, timeout.Options{})
		if err := r.store.SetPaused(t.Context(), kind, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if r.count.leads() != 1 {
			t.Fatalf("%d lead", r.count.leads())
		}
		roles.supersede()
		time.Sleep(3 * time.Second)
		if r.count.leads() != 0 {
			t.Errorf("%d lead", r.count.leads())
		}
	})
}

// An instance that is cut off from the lock service does nothing of the leader's while there is
// one. When there is none it scans and reassigns, and does not repair the index.
func TestNoFallbackScanWhileALeaderIsActive(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		t := r.t
		b, away, roles := newBook(), newService(), new(memRoles)
		away.down.Store(true)
		r.link.frail[1], r.link.frail[2] = true, true // only an overdue scan fires anything
		led, cut := newCounter(), newCounter()
		_, stop := r.start(timeout.Config{Leader: newService(), Roles: roles, Observer: led}, b.handle, timeout.Options{})
		time.Sleep(2 * time.Second)
		q, _ := r.start(timeout.Config{Leader: away, Roles: roles, Observer: cut}, b.handle, timeout.Options{})
		for _, id := range ids(20) {
			r.schedule(q, time.Now(), id)
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Second)
		if n := led.repaired(timeout.RepairOverdue); n != 20 || len(cut.repairs) != 0 {
			t.Errorf("the leader claimed %d of 20, the other one repaired %v", n, cut.repairs)
		}
		stop()
		r.mem.Wipe()
		for _, id := range ids(40)[20:] {
			if _, err := q.Schedule(t.Context(), nil, timeout.Timer{Kind: kind, ID: id, Due: time.Now()}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		partition := timeout.Timer{Kind: kind, ID: "reassigned", Due: time.Now().Add(10 * time.Second)}
		if err := r.store.Insert(t.Context(), nil, "gone", "", []timeout.Timer{partition}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := cut.repaired(timeout.RepairOverdue); n != 21 || cut.repaired(timeout.RepairReassign) != 1 || len(cut.repairs) != 2 || cut.most != 0 {
			t.Errorf("without a leader %d of 21 were claimed, repaired %v, %d led", n, cut.repairs, cut.most)
		}
		if len(cut.errs) == 0 {
			t.Error("the failed elections were not reported")
		}
		b.once(t)
	})
}
