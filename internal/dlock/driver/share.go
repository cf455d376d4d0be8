package driver

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
)

// Share is an acquisition, and then the grant that the callers of one process share.
type Share struct {
	turns *Turns
	queue *queue

	// The first request of a caller that nobody precedes is sent by this caller, and has no cancel. All else is done by a
	// goroutine, because it may outlive the caller that began it.
	cancel  context.CancelCauseFunc
	vain    bool          // all who wanted it have left
	settled chan struct{} // closed when err is set
	err     error

	grant dlock.Grant // of the store, with the first token of its block
	turn  uint64
	lease *dlock.Lease // of the turn
	until time.Time    // no turn begins later
	end   *time.Timer  // shuts it then, if anybody waits
	over  bool         // it has no turn left
}

// take runs take. A panic is one of the waiter that is first, and an error to the others.
func (s *Share) take(ctx context.Context, take Take) (o outcome, wait Wait) {
	defer func() {
		if o.panicked = recover(); o.panicked != nil {
			o.err = fmt.Errorf("driver: the acquisition of another caller has panicked: %v", o.panicked)
		}
	}()
	o.lease, wait, o.err = take(ctx, s)
	return o, wait
}

// Of returns the grant of the first turn under g, which the store keeps until the last one has been released. A nil
// Share returns g.
func (s *Share) Of(g dlock.Grant) dlock.Grant {
	if s == nil {
		return g
	}
	s.grant = g
	return s.of(0)
}

// of returns the grant of a turn. Its release passes the grant of the store on, to the next turn or to the store.
func (s *Share) of(turn uint64) dlock.Grant {
	g := s.grant.OfTurn(turn)
	g.Release = func(ctx context.Context) error {
		if s.pass() {
			return nil
		}
		return s.grant.Release(ctx)
	}
	g.Ended = func(outcome error) { s.ended(turn, outcome) }
	return g
}

// ended says that a turn is over. If it was the last one, so is the grant.
func (s *Share) ended(turn uint64, outcome error) {
	s.turns.mu.Lock()
	last := s.turn == turn
	if last {
		s.shut()
	}
	s.turns.mu.Unlock()
	if last && s.grant.Ended != nil {
		s.grant.Ended(outcome)
	}
}

// pass gives the grant to the next who waits, if it has another turn.
func (s *Share) pass() bool {
	t := s.turns
	t.mu.Lock()
	var next []*waiter
	if s.queue.share == s && s.lasts() {
		next = s.queue.next(1)
	}
	if len(next) == 0 {
		s.shut()
		t.mu.Unlock()
		return false
	}
	s.turn++
	g := s.of(s.turn)
	if s.turn+1 == TurnsPerGrant {
		s.shut()
	}
	t.mu.Unlock()
	lease := dlock.NewLease(next[0].ctx, g)
	t.mu.Lock()
	s.lease = lease
	t.mu.Unlock()
	next[0].done <- outcome{lease: lease}
	return true
}

// lasts reports whether another turn may begin. The validity of that counts from the last renewal, because the grant may
// be old: in etcd, a waiter has one. It requires mu.
func (s *Share) lasts() bool {
	sent, keeps, err := s.lease.Kept()
	s.grant.Sent, s.grant.First = sent, keeps
	return err == nil && time.Now().Before(s.until)
}

// shut ends the sharing of a grant. It requires mu.
func (s *Share) shut() {
	s.over = true
	if s.end != nil {
		s.end.Stop()
	}
	if s.queue.share == s {
		s.queue.share = nil
		s.turns.serve(s.queue)
	}
}
