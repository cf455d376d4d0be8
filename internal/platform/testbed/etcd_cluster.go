package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// etcdMembers is how many servers a cluster has: it works on with two of them.
const etcdMembers = 3

// EtcdCluster is etcd on three servers.
type EtcdCluster struct{ members []*Etcd }

// StartEtcdCluster runs three servers on free loopback ports and returns when each of them has answered a linearizable
// read.
func StartEtcdCluster(ctx context.Context, cfg EtcdConfig) (*EtcdCluster, error) {
	c := &EtcdCluster{}
	for range etcdMembers {
		e, err := openEtcd(ctx, "")
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.members = append(c.members, e)
	}
	var err error
	for range startAttempts {
		if err = c.start(ctx, cfg); !errors.Is(err, errExited) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// start tries one set of ports. The servers need each other to become ready, so they start at the same time. If one
// gives up, all start again.
func (c *EtcdCluster) start(ctx context.Context, cfg EtcdConfig) error {
	for _, e := range c.members {
		if err := errors.Join(e.Kill(), e.place(ctx)); err != nil {
			return err
		}
	}
	starts, ctx := errgroup.WithContext(ctx)
	for _, e := range c.members {
		e.args = cfg.args(e, c.members)
		starts.Go(func() error { return e.start(ctx) })
	}
	return starts.Wait()
}

// Addrs are the addresses of the servers, as HOST:PORT.
func (c *EtcdCluster) Addrs() []string { return addrsOf(c.members) }

// Members are the servers behind Addrs, to be paused, killed and restarted. One that
// is killed while another one is unavailable cannot be restarted before that has recovered.
func (c *EtcdCluster) Members() []*Etcd { return slices.Clone(c.members) }

// Leader waits until most of the servers name the same leader, and returns it. It
// fails when ctx ends, after a minute at the latest.
func (c *EtcdCluster) Leader(ctx context.Context) (*Etcd, error) {
	var leader *Etcd
	err := until(ctx, "etcd", func(ctx context.Context) error {
		ids, votes := map[string]*Etcd{}, map[string]int{}
		for _, e := range c.members {
			one, cancel := context.WithTimeout(ctx, attemptTimeout/4)
			status, _, err := e.view(one)
			cancel()
			if err != nil { // it has no vote
				continue
			}
			ids[status.Header.MemberID] = e
			votes[status.Leader]++
		}
		for id, n := range votes {
			if leader = ids[id]; leader != nil && 2*n > len(c.members) {
				return nil
			}
		}
		return fmt.Errorf("no leader: %v", votes)
	})
	return leader, err
}

// Close kills the servers and removes what they wrote.
func (c *EtcdCluster) Close() error { return closeAll(c.members) }
