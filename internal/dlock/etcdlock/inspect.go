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

// Inspect implements [dlock.Inspector]. The holder's Since is when it asked, by its
// own clock: etcd has none to ask.
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	return l.s.inspect(ctx, key)
}

// ForceRelease implements [dlock.ForceReleaser]. The holder is notified of it at once, if
// etcd reaches it.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	return l.s.force(ctx, key)
}

// queue returns the holders of key, and how many callers wait for it.
func (s *store) queue(ctx context.Context, key string) (holders []*mvccpb.KeyValue, waiters int, err error) {
	if err := driver.CheckKey(key); err != nil {
		return nil, 0, err
	}
	found, err := s.read(ctx, earliest(s.keys.queue(key)))
	if err != nil {
		return nil, 0, err
	}
	for i, kv := range found.Kvs {
		kind, _ := s.keys.kindOf(key, string(kv.Key))
		if i > 0 && kind != reading {
			break
		}
		holders = append(holders, kv)
		if kind != reading {
			break
		}
	}
	return holders, len(found.Kvs) - len(holders), nil
}

func (s *store) inspect(ctx context.Context, key string) (dlock.State, error) {
	state := dlock.State{Key: key}
	holders, waiters, err := s.queue(ctx, key)
	if err != nil {
		return dlock.State{}, fmt.Errorf("etcdlock: inspect %q: %w", key, err)
	}
	if len(holders) == 0 {
		return state, nil
	}
	first := holders[0]
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
	_, owner := s.keys.kindOf(key, string(first.Key))
	state.Held, state.Waiters = true, waiters
	state.Fence = dlock.Fence{Token: tokenOf(first.CreateRevision), Owner: owner}
	if since, err := strconv.ParseInt(string(first.Value), 10, 64); err == nil {
		state.Since = time.UnixMicro(since)
	}
	return state, nil
}

func (s *store) force(ctx context.Context, key string) error {
	holders, _, err := s.queue(ctx, key)
	if err != nil {
		return fmt.Errorf("etcdlock: force release %q: %w", key, err)
	}
	for _, kv := range holders {
		own := string(kv.Key)
		_, owner := s.keys.kindOf(key, own)
		_, err := s.txn(ctx, forcing(own, s.keys.forced(owner), kv.CreateRevision, kv.Lease))
		if err != nil && !isGone(err) {
			return fmt.Errorf("etcdlock: force release %q: %w", key, err)
		}
	}
	return nil
}
