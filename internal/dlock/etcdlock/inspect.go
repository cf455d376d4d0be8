package etcdlock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// queue returns the queue of key, the holder first.
func (s *store) queue(ctx context.Context, key string) ([]*mvccpb.KeyValue, error) {
	if err := driver.CheckKey(key); err != nil {
		return nil, err
	}
	found, err := s.read(ctx, earliest(s.keys.queue(key)))
	return found.GetKvs(), err
}

// Inspect implements [dlock.Inspector]. The holder's Since is when it asked, by its
// own clock: etcd has none to ask.
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	s, state := l.s, dlock.State{Key: key}
	queue, err := s.queue(ctx, key)
	if err != nil {
		return dlock.State{}, fmt.Errorf("etcdlock: inspect %q: %w", key, err)
	}
	if len(queue) == 0 {
		return state, nil
	}
	first := queue[0]
	if first.Lease != 0 { // a key that somebody else has put there may have none, and does not end
		left, err := request(ctx, s.cfg.Timeout, s.leases.LeaseTimeToLive, &pb.LeaseTimeToLiveRequest{ID: first.Lease})
		if err != nil {
			return dlock.State{}, fmt.Errorf("etcdlock: inspect %q: %w", key, err)
		}
		if left.TTL < 0 { // it has ended since
			return state, nil
		}
		state.TTL = time.Duration(left.TTL) * time.Second
	}
	state.Held, state.Waiters = true, len(queue)-1
	state.Fence = dlock.Fence{Token: tokenOf(first.CreateRevision), Owner: s.keys.ownerIn(key, string(first.Key))}
	if since, err := strconv.ParseInt(string(first.Value), 10, 64); err == nil {
		state.Since = time.UnixMicro(since)
	}
	return state, nil
}

// ForceRelease implements [dlock.ForceReleaser]. The holder is notified of it at once, if
// etcd reaches it.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	queue, err := l.s.queue(ctx, key)
	if err == nil && len(queue) > 0 {
		kv := queue[0]
		own := string(kv.Key)
		_, err = l.s.txn(ctx, forcing(own, l.s.keys.forced(l.s.keys.ownerIn(key, own)), kv.CreateRevision, kv.Lease))
	}
	if err != nil && !isGone(err) {
		return fmt.Errorf("etcdlock: force release %q: %w", key, err)
	}
	return nil
}
