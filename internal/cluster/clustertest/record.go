package clustertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Record is what leaders did: they write to a register that checks their fences.
type Record struct {
	mu       sync.Mutex
	terms    []*recorded   // in the order in which they were known to begin
	accepted []dlock.Fence // of the writes, in order
	writer   map[dlock.Fence]string
	register dlock.Fence // the last fence that was accepted
	twisted  int         // writes under a fence that somebody else has used
}

// recorded is a term as its leader has seen it.
type recorded struct {
	leader           cluster.Leader
	began, ended     time.Time // ended is zero as long as it continues
	writes, refusals int
	valid            int  // refusals while the leader considered its lease valid
	stopped          bool // its process was stopped, or killed: it could not see the end

	leads func() bool // whether the leader considers its lease valid; nil if only it knows
}

// NewRecord returns an empty record.
func NewRecord() *Record { return &Record{writer: map[dlock.Fence]string{}} }

// Begin notes that a term has begun. leads reports whether its leader considers its lease valid; nil if
// that is known by [Record.End] alone. A leader that does not, when the next term begins, may
// come to say so only afterwards: it has known in time.
func (r *Record) Begin(l cluster.Leader, leads func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, one := range r.terms {
		if one.ended.IsZero() && one.leads != nil && !one.leads() {
			one.ended = now
		}
	}
	r.terms = append(r.terms, &recorded{leader: l, began: now, leads: leads})
}

// End notes that the leader knows of the end of its term.
func (r *Record) End(l cluster.Leader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.find(l); one != nil && one.ended.IsZero() {
		one.ended = time.Now()
	}
}

// Stop notes that the process of the leader does not see the end of its term.
func (r *Record) Stop(l cluster.Leader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.find(l); one != nil {
		one.stopped = true
	}
}

// Write is a write of a leader, which the register accepts or refuses. valid reports
// that the leader was in its term, as far as it knew, before and after the write.
func (r *Record) Write(l cluster.Leader, valid func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.find(l)
	if one == nil || !valid() {
		return
	}
	if !l.Fence.Passes(r.register) {
		one.refusals++
		if valid() {
			one.valid++
		}
		return
	}
	if by, ok := r.writer[l.Fence]; ok && by != l.Name {
		r.twisted++
	}
	r.writer[l.Fence] = l.Name
	r.register = l.Fence
	r.accepted = append(r.accepted, l.Fence)
	one.writes++
}

// Lead leads whenever it can, and writes, until ctx ends.
func (r *Record) Lead(ctx context.Context, t testing.TB, e cluster.Election, name string) {
	leads(ctx, t, e, name, func(work context.Context, term *cluster.Term) error {
		leads := func() bool { return term.Err() == nil }
		r.Begin(term.Leader(), leads)
		defer r.End(term.Leader())
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for {
			r.Write(term.Leader(), leads)
			select {
			case <-work.Done():
				return nil
			case <-pace.C:
			}
		}
	})
}

// find requires mu.
func (r *Record) find(l cluster.Leader) *recorded {
	for _, one := range r.terms {
		if one.leader.Equal(l) {
			return one
		}
	}
	return nil
}

// Await waits until somebody leads in a later term than that of after.
func (r *Record) Await(t testing.TB, after cluster.Leader) (l cluster.Leader) {
	t.Helper()
	Wait(t, "next leader", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.terms) == 0 {
			return false
		}
		last := r.terms[len(r.terms)-1]
		l = last.leader
		return last.ended.IsZero() && !last.stopped && !l.Equal(after) && last.writes > 0
	})
	return l
}

// AwaitWrites waits until n writes of a term have been accepted, or it is over.
func (r *Record) AwaitWrites(t testing.TB, l cluster.Leader, n int) {
	t.Helper()
	Wait(t, "writes", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		one := r.find(l)
		return one.writes >= n || !one.ended.IsZero()
	})
}

// Refusals is how many writes of a term were refused.
func (r *Record) Refusals(l cluster.Leader) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(l).refusals
}

// Ended returns when the leader knew of the end of its term.
func (r *Record) Ended(l cluster.Leader) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(l).ended
}

// Check fails the test unless the writes of each term are contiguous and terms have growing tokens. Each leader must
// have noticed the end of its term before the next term began, unless its process was paused.
func (r *Record) Check(t testing.TB, least int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.terms) < least {
		t.Errorf("only %d terms: that proves little", len(r.terms))
	}
	runs := slices.Compact(slices.Clone(r.accepted))
	for k := 1; k < len(runs); k++ {
		if runs[k].Token <= runs[k-1].Token {
			testbedtest.Final(t, "work of term %d after that of term %d", runs[k].Token, runs[k-1].Token)
		}
	}
	if r.twisted > 0 {
		testbedtest.Final(t, "%d writes by two leaders of one term", r.twisted)
	}
	refused := 0
	for k, one := range r.terms {
		refused += one.refusals
		if one.valid > 0 && !one.stopped {
			t.Errorf("%s, term %d: %d writes refused while its lease was valid", one.leader.Name, one.leader.Fence.Token, one.valid)
		}
		if k == 0 {
			continue
		}
		before := r.terms[k-1]
		if before.leader.Fence.Token >= one.leader.Fence.Token {
			t.Errorf("term %d follows term %d", one.leader.Fence.Token, before.leader.Fence.Token)
		}
		if !before.stopped && (before.ended.IsZero() || before.ended.After(one.began)) {
			t.Errorf("%s leads in term %d, and %s still considers its lease valid in term %d",
				one.leader.Name, one.leader.Fence.Token, before.leader.Name, before.leader.Fence.Token)
		}
	}
	t.Logf("%d terms, %d writes accepted, %d refused", len(r.terms), len(r.accepted), refused)
}
