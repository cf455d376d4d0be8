package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	// sentinels and quorum are the smallest group that survives one of its members.
	sentinels, quorum = 3, 2
	masterName        = "shop"
)

// Sentinel is a Redis master with one replica, watched by three sentinels that replace it about three seconds after it has
// died. The roles change; Master says who has them now.
type Sentinel struct {
	data     []*Redis // two
	watchers []*Redis // three
}

// StartSentinel runs the five servers on free loopback ports. It returns when the sentinels know each other, agree on
// the master, and can replace it by a replica that is in step.
func StartSentinel(ctx context.Context) (*Sentinel, error) {
	s := &Sentinel{}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sentinel) start(ctx context.Context) error {
	for range 2 {
		node, err := startNode(ctx, "redis", func(int) ([]string, error) { return replicating(), nil })
		if err != nil {
			return err
		}
		s.data = append(s.data, node)
	}
	master, replica := s.data[0], s.data[1]
	host, port, _ := strings.Cut(master.addr, ":")
	// A command, stored by CONFIG REWRITE, not a start option. An option would make the server a replica again after
	// a promotion and a restart.
	if err := replica.ask(ctx, func(ctx context.Context, c *redis.Client) error {
		return cmp.Or(c.ReplicaOf(ctx, host, port).Err(), c.ConfigRewrite(ctx).Err())
	}); err != nil {
		return err
	}
	if err := until(ctx, "replication", func(ctx context.Context) error { return s.replicates(ctx, master) }); err != nil {
		return err
	}
	for range sentinels {
		watcher, err := startWatcher(ctx, host, port)
		if err != nil {
			return err
		}
		s.watchers = append(s.watchers, watcher)
	}
	return s.WaitReady(ctx)
}

func startWatcher(ctx context.Context, host, port string) (*Redis, error) {
	watcher, err := startNode(ctx, "sentinel", func(int) ([]string, error) {
		return []string{
			fmt.Sprintf("sentinel monitor %s %s %s %d", masterName, host, port, quorum),
			fmt.Sprintf("sentinel down-after-milliseconds %s 1000", masterName), // a busy machine makes a healthy server wait, too
			fmt.Sprintf("sentinel failover-timeout %s 2000", masterName),
		}, nil
	}, "--sentinel")
	if err != nil {
		return nil, err
	}
	ready := watcher.ready
	watcher.Process.ready = func(ctx context.Context, pid int) error {
		if err := ready(ctx, pid); err != nil {
			return err
		}
		return watcher.hurry(ctx)
	}
	return watcher, watcher.hurry(ctx)
}

// StartLoneSentinel runs one sentinel on a free loopback port, with these settings, one line each, as in sentinel.conf. It has
// another port for TLS, whose HOST:PORT is returned, too.
func StartLoneSentinel(ctx context.Context, settings ...string) (s *Redis, secure string, err error) {
	s, err = startNode(ctx, "sentinel", func(int) ([]string, error) {
		port, err := freePort(ctx)
		secure = loopback(port)
		return append([]string{fmt.Sprintf("tls-port %d", port)}, settings...), err
	}, "--sentinel")
	return s, secure, err
}

// hurry shortens periods that are no settings and do not survive a restart. After some of them sentinels find each
// other, and a master that returns becomes a replica.
//
// A sentinel connects to a server at most once per ping-period. By default that is a second, as long as a dead master is silent: after
// a failover it would take the new master for dead before it has connected, and may promote the old one, which is empty.
//
// A sentinel that was paused, as by its disk, must not count that time as a server's silence: it would
// by default notice two seconds, and then do nothing for thirty.
func (r *Redis) hurry(ctx context.Context) error {
	return r.ask(ctx, func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, "SENTINEL", "DEBUG", "ping-period", "200", "publish-period", "200", "info-period", "500",
			"ask-period", "200", "tilt-trigger", "500", "tilt-period", "1000").Err()
	})
}

// MasterName is the name under which the sentinels know the master.
func (s *Sentinel) MasterName() string { return masterName }

// SentinelAddrs are the addresses of the sentinels, as HOST:PORT.
func (s *Sentinel) SentinelAddrs() []string { return (&servers[*Redis]{s.watchers}).Addrs() }

// Sentinels are the servers behind SentinelAddrs, to be paused or killed.
func (s *Sentinel) Sentinels() []*Redis { return slices.Clone(s.watchers) }

// Master is the data node that every sentinel which answers takes for the master.
// It fails while they do not agree.
func (s *Sentinel) Master(ctx context.Context) (*Redis, error) {
	addr := ""
	for _, w := range s.watchers {
		err := w.ask(ctx, func(ctx context.Context, c *redis.Client) error {
			named, err := c.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).StringSlice()
			if err != nil || len(named) != 2 {
				return cmp.Or(err, errors.New("no master"))
			}
			named[0] = net.JoinHostPort(named[0], named[1])
			if addr != "" && named[0] != addr {
				return errDisagree
			}
			addr = named[0]
			return nil
		})
		if errors.Is(err, errDisagree) {
			return nil, err
		}
	}
	for _, node := range s.data {
		if node.addr == addr {
			return node, nil
		}
	}
	return nil, errors.New("sentinel: no sentinel names a master")
}

var errDisagree = errors.New("sentinels disagree on the master")

func (s *Sentinel) other(node *Redis) *Redis {
	if node == s.data[0] {
		return s.data[1]
	}
	return s.data[0]
}

// Close kills the servers and removes what they wrote.
func (s *Sentinel) Close() error { return closeAll(slices.Concat(s.watchers, s.data)) }
