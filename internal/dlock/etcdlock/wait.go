package etcdlock

import (
	"context"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
)

// wait returns nil when all who came before are gone, by a look or by the news.
type wait struct {
	*place

	next   *watch // the last of those that came before
	alone  bool   // it is the only one of them
	looked int64  // revision at which own was there, and next was
}

// wait waits until nobody is ahead. ahead are the last ones that came before.
func (p *place) wait(ctx context.Context, ahead []string) error {
	w := &wait{place: p, looked: p.revision}
	p.s.hub.add(p.watch, 0)
	w.follow(ahead)
	defer func() { p.s.hub.drop(w.next) }()
	timer := time.NewTimer(p.pause())
	defer timer.Stop()
	for {
		look := false
		select {
		case <-p.wake:
		case <-timer.C:
			look = true
			timer.Reset(p.pause())
		case <-ctx.Done():
			return dlock.Ended(ctx)
		case <-p.lease.Done():
			return p.lost()
		}
		if done, err := w.turn(ctx, look); done || err != nil {
			return err
		}
	}
}

// follow watches the first of ahead.
func (w *wait) follow(ahead []string) {
	if w.next != nil {
		w.s.hub.drop(w.next)
	}
	w.next, w.alone = &watch{key: ahead[0], told: func(bool) { w.signal() }}, len(ahead) == 1
	w.s.hub.add(w.next, 0)
}

// turn decides whether it is the turn of w. Without a look it is so only if the one
// that is gone was the only one ahead, and if all that happened since that was read
// was heard of: in the order in which it happened, so that own was still there.
func (w *wait) turn(ctx context.Context, look bool) (bool, error) {
	for {
		since, gone := w.s.hub.state(w.watch, w.next)
		switch {
		case gone[0]:
			return false, w.ended()
		case since > w.looked, gone[1] && !w.alone:
			look = true
		case gone[1] && since > 0:
			return true, nil
		}
		if !look {
			return false, nil
		}
		look = false
		again, done, err := w.look(ctx)
		if done || err != nil || !again {
			return done, err
		}
	}
}

// look asks etcd. It reports whether to decide anew. A look that fails is repeated
// after a pause, for as long as the lease is trusted.
func (w *wait) look(ctx context.Context) (again, done bool, err error) {
	answer, err := w.s.txn(ctx, whoIsLeft(w.s.keys.ahead(w.key, w.kind), w.own, w.next.key, w.revision))
	if err != nil {
		return false, false, nil //nolint:nilerr // The pause, ctx or the lease decides.
	}
	if !slices.Contains(names(answer.Responses[0]), w.own) {
		return false, false, w.ended()
	}
	w.looked = answer.Header.Revision
	if answer.Succeeded {
		return true, false, nil
	}
	ahead := names(answer.Responses[1])
	if len(ahead) == 0 {
		return false, true, nil
	}
	w.follow(ahead)
	return false, false, nil
}

// ended ends a place whose key is gone.
func (w *wait) ended() error {
	h := w.held()
	w.s.renewer.Lose(w.owner, &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired})
	return w.lost()
}
