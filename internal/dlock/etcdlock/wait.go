package etcdlock

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// wait is a place on its way to the head of the queue. It watches the last two of
// those that came before it: the end of the last one is its turn, if that was the
// only one left, and the end of the one before tells it to find that out in time.
type wait struct {
	*place

	ahead  []*watch // one or two, the last one first
	looked int64    // revision at which own was there, and ahead were the last ones
}

// wait returns nil when nobody is ahead any more. ahead are the last ones that came
// before.
func (p *place) wait(ctx context.Context, ahead []string) error {
	w := &wait{place: p, looked: p.revision}
	p.s.hub.add(p.watch, 0)
	w.follow(ahead)
	defer func() { w.follow(nil) }()
	timer := time.NewTimer(p.pause())
	defer timer.Stop()
	for {
		overdue := false
		select {
		case <-p.wake:
		case <-timer.C:
			overdue = true
			timer.Reset(p.pause())
		case <-ctx.Done():
			return dlock.Ended(ctx)
		case <-p.lease.Done():
			return p.lost()
		}
		if done, err := w.turn(ctx, overdue); done || err != nil {
			return err
		}
	}
}

// follow watches ahead from now on, and nobody else. It reports whether it did before.
func (w *wait) follow(ahead []string) (same bool) {
	same = true
	var watches []*watch
	for _, key := range ahead {
		i := slices.IndexFunc(w.ahead, func(a *watch) bool { return a.key == key })
		if i >= 0 {
			watches = append(watches, w.ahead[i])
			continue
		}
		same = false
		a := &watch{key: key, told: func(bool) { w.signal() }}
		w.s.hub.add(a, 0)
		watches = append(watches, a)
	}
	for _, a := range w.ahead {
		if !slices.Contains(watches, a) {
			w.s.hub.drop(a)
		}
	}
	w.ahead = watches
	return same
}

// turn decides whether it is the turn of w. It is so without a look if the one that
// has ended was the only one ahead, and all that has happened since that was read was
// heard of, in the order in which it happened: then own was still there.
func (w *wait) turn(ctx context.Context, overdue bool) (bool, error) {
	for {
		since, ends := w.s.hub.state(append(slices.Clone(w.ahead), w.watch)...)
		ends, own := ends[:len(w.ahead)], ends[len(w.ahead)]
		ended := slices.Max(ends)
		switch {
		case own > 0:
			return false, w.ended()
		case since > w.looked, ended > 0 && len(w.ahead) > 1, overdue:
		case ended > 0 && since > 0:
			return true, nil
		default:
			return false, nil
		}
		again, done, err := w.look(ctx, max(since, ended), !overdue)
		if done || err != nil || !again {
			return done, err
		}
		overdue = false
	}
}

// look asks etcd, and again if a member that may answer as it likes does not know yet
// what another one has told. It reports whether to decide anew. A look that fails is
// repeated after a pause, for as long as the lease is trusted.
func (w *wait) look(ctx context.Context, heard int64, local bool) (again, done bool, err error) {
	var known []string
	for _, a := range w.ahead {
		known = append(known, a.key)
	}
	ask := func(local bool) (*pb.TxnResponse, error) {
		return w.s.txn(ctx, whoIsLeft(w.s.keys.ahead(w.key, w.kind), w.own, known, w.revision, local))
	}
	answer, err := ask(local)
	if err == nil && local && answer.Header.Revision < max(heard, w.revision) {
		answer, err = ask(false)
	}
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
	left := names(answer.Responses[1])
	return w.follow(left), len(left) == 0, nil
}

// ended ends a place whose key is gone.
func (w *wait) ended() error {
	h := w.held()
	w.s.renewer.Lose(w.owner, &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired})
	return w.lost()
}
