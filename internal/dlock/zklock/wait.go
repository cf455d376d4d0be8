package zklock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/zookeeper"
)

// event is what ends a wait.
type event int

const (
	look   event = iota // time to poll again
	passed              // the node before is deleted
	freed               // the node before is that of a holder, which releases
)

// await waits until n is the first. It returns errGone if n is no more.
func (q *queue) await(ctx context.Context, c claim, n zookeeper.Node) (*dlock.Lease, error) {
	var own *self // nil before it is watched
	where := positionOf(n.Children, n.ID)
	for ; ; where.found = false {
		if !where.found {
			var err error
			if where, err = q.readPosition(ctx, c, n); err != nil {
				return nil, err
			}
		}
		if where.ahead == 0 {
			return q.first(ctx, c, n, own)
		}
		if own == nil {
			own = q.watchSelf(ctx, n)
		}
		e, err := q.follow(ctx, own, n, c.dir+"/"+where.last)
		if err == nil {
			err = own.watched(ctx)
		}
		switch {
		case unanswered(err):
			if err := q.mayContinue(ctx, n, err); err != nil {
				return nil, err
			}
			own = nil
		case err != nil:
			return nil, err
		case e == freed || e == passed && where.ahead == 1:
			// With nobody else ahead, and none that can come between, n is the first now.
			return q.first(ctx, c, n, own)
		}
	}
}

// self is the watch of a waiter on its own node.
type self struct {
	gone chan struct{} // closed when something has happened to the node
	set  chan error    // has the outcome of setting the watch
}

// watchSelf begins to watch n, alongside the node before it: one round trip for both.
func (q *queue) watchSelf(ctx context.Context, n zookeeper.Node) *self {
	own := &self{gone: make(chan struct{}), set: make(chan error, 1)}
	go func() { own.set <- q.watchOwn(ctx, n, func() { close(own.gone) }) }()
	return own
}

// watched returns nil if the watch is set, and the node has been there since.
func (s *self) watched(ctx context.Context) error {
	select {
	case err := <-s.set:
		s.set <- err // for the next time
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-s.gone:
		return errGone
	default:
		return nil
	}
}

// first makes n, which is the first, a lease. Its validity starts when its session
// was last confirmed, so that has to be of late.
func (q *queue) first(ctx context.Context, c claim, n zookeeper.Node, own *self) (*dlock.Lease, error) {
	for time.Since(q.s.Confirmed()) > q.ttl()/3 {
		if err := q.confirm(ctx); err != nil {
			if err := q.mayContinue(ctx, n, err); err != nil {
				return nil, err
			}
		}
	}
	for {
		lease, err := q.grant(ctx, c, n, own != nil)
		if !unanswered(err) {
			return lease, err
		}
		if err := q.mayContinue(ctx, n, err); err != nil {
			return nil, err
		}
	}
}

// follow waits for the end of the node at path, the last one ahead of n.
func (q *queue) follow(ctx context.Context, own *self, n zookeeper.Node, path string) (event, error) {
	events := make(chan event, 1)
	defer q.enlist(path, events)()
	_, _, stop, err := q.s.GetW(ctx, path, func(e zookeeper.Event) {
		what := look
		switch e {
		case zookeeper.Deleted:
			what = passed
		case zookeeper.Changed:
			what = freed
		case zookeeper.Ended: // as is its own node
		}
		select {
		case events <- what:
		default: // it has been woken already
		}
	})
	if errors.Is(err, zk.ErrNoNode) {
		return look, nil
	}
	if err != nil {
		return look, q.mayContinue(ctx, n, err)
	}
	defer stop()
	for {
		e, again, err := q.sleep(ctx, own, events)
		if !again || err != nil {
			return e, err
		}
		if err := q.glance(ctx, path); errors.Is(err, zk.ErrNoNode) {
			return look, nil
		} else if err != nil {
			if err := q.mayContinue(ctx, n, err); err != nil {
				return look, err
			}
		}
	}
}

// sleep waits for an event, and says when it is time to look without one.
func (q *queue) sleep(ctx context.Context, own *self, events <-chan event) (e event, again bool, err error) {
	select {
	case e := <-events:
		return e, false, nil
	case <-time.After(q.fallbackPoll()*8/10 + rand.N(q.fallbackPoll()*2/10)):
		return look, true, nil
	case <-own.gone:
		return look, false, errGone
	case <-ctx.Done():
		return look, false, ctx.Err()
	}
}

// confirm confirms the session, once for all concurrent callers.
func (q *queue) confirm(ctx context.Context) error {
	done := q.confirms.DoChan("", func() (any, error) {
		return nil, q.s.Confirm(context.WithoutCancel(ctx)) // which bounds it; the others wait, too
	})
	select {
	case outcome := <-done:
		return outcome.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// glance confirms the session, unless that has been done of late, and reads the node at path.
func (q *queue) glance(ctx context.Context, path string) error {
	if time.Since(q.s.Confirmed()) > q.fallbackPoll()/2 {
		if err := q.confirm(ctx); err != nil {
			return err
		}
	}
	_, _, err := q.s.Get(ctx, path)
	return err
}

// enlist makes events receive when the holder whose node is at path releases, if it is one of this process.
func (q *queue) enlist(path string, events chan event) (leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next[path] == nil {
		q.next[path] = map[chan event]struct{}{}
	}
	q.next[path][events] = struct{}{}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if delete(q.next[path], events); len(q.next[path]) == 0 {
			delete(q.next, path)
		}
	}
}

// free notifies the waiters for the node at path that its holder has released it.
func (q *queue) free(path string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for events := range q.next[path] {
		select {
		case events <- freed:
		default: // it has been woken already
		}
	}
}

// readPosition reads the position of n, again and again if no server answers.
func (q *queue) readPosition(ctx context.Context, c claim, n zookeeper.Node) (position, error) {
	for {
		names, _, err := q.s.Children(ctx, c.dir)
		switch {
		case err == nil:
			where := positionOf(names, n.ID)
			if !where.found {
				return where, errGone
			}
			return where, nil
		case errors.Is(err, zk.ErrNoNode):
			return position{}, errGone
		}
		if err := q.mayContinue(ctx, n, err); err != nil {
			return position{}, err
		}
	}
}

func unanswered(err error) bool {
	return errors.Is(err, zookeeper.ErrUncertain) || errors.Is(err, zookeeper.ErrUnavailable)
}

// mayContinue decides whether a waiter continues after a failed read: as long as its session may live.
func (q *queue) mayContinue(ctx context.Context, n zookeeper.Node, failed error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case q.s.Epoch() != n.Epoch:
		return errGone
	case errors.Is(failed, zookeeper.ErrClosed), time.Since(q.s.Confirmed()) > q.s.Timeout():
		return unsent(failed)
	}
	if !backoff.Jitter(ctx, q.fallbackPoll()/5) {
		return ctx.Err()
	}
	return nil
}
