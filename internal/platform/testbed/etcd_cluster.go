package testbed

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// etcdMembers is how many servers a cluster has: it works on with two of them.
const etcdMembers = 3

// EtcdCluster is etcd on three servers. One that is killed while another one is unavailable cannot be restarted before that
// has recovered.
type EtcdCluster struct{ servers[*Etcd] }

// StartEtcdCluster runs three servers on free loopback ports and returns when each of them has answered a linearizable
// read.
func StartEtcdCluster(ctx context.Context, cfg EtcdConfig) (*EtcdCluster, error) {
	c := &EtcdCluster{}
	for range etcdMembers {
		e, err := openEtcd(ctx)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.nodes = append(c.nodes, e)
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
	for _, e := range c.nodes {
		if err := errors.Join(e.Kill(), e.place(ctx)); err != nil {
			return err
		}
	}
	starts, ctx := errgroup.WithContext(ctx)
	for _, e := range c.nodes {
		e.args = cfg.args(e, c.nodes)
		starts.Go(func() error { return e.start(ctx) })
	}
	return starts.Wait()
}

// Leader waits until most of the servers name the same leader, and returns it. It
// fails when ctx ends, after a minute at the latest.
func (c *EtcdCluster) Leader(ctx context.Context) (*Etcd, error) {
	var leader *Etcd
	err := until(ctx, "etcd", func(ctx context.Context) error {
		ids, votes := map[string]*Etcd{}, map[string]int{}
		for _, e := range c.nodes {
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
			if leader = ids[id]; leader != nil && 2*n > len(c.nodes) {
				return nil
			}
		}
		return fmt.Errorf("no leader: %v", votes)
	})
	return leader, err
}
