package zkcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/zookeeper"
)

// Config is the configuration of a [Cluster]. How long an instance that has died is
// listed is the timeout of the session.
type Config struct {
	// Prefix is the node below which everything is, seen from the root of the session.
	// Empty means "/cluster".
	Prefix string

	// Gap is the least time between two readings of one sequence: what bounds the cost
	// of a storm of changes, and how late a change may be seen. 0 means 100 ms.
	Gap time.Duration

	// OnError is told of nodes that are no entries, once each, and of what is tried
	// again in the background. It must not block. Default: nobody is told.
	OnError func(error)
}

// Cluster is what an instance has of the others in ZooKeeper. It is safe for
// concurrent use, and has no goroutines of its own.
type Cluster struct {
	s   *zookeeper.Session
	cfg Config

	mu     sync.Mutex
	strays map[string]struct{} // those that have been told of
}

var (
	_ cluster.Membership  = (*Cluster)(nil)
	_ cluster.Board       = (*Cluster)(nil)
	_ cluster.ConfigStore = (*Cluster)(nil)
)

// New returns a Cluster on s, which it does not close. The end of s ends what is
// listed of this instance.
func New(s *zookeeper.Session, cfg Config) (*Cluster, error) {
	cfg.Prefix = cmp.Or(cfg.Prefix, "/cluster")
	cfg.Gap = cmp.Or(cfg.Gap, 100*time.Millisecond)
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	if !strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/") {
		return nil, fmt.Errorf("zkcluster: prefix %q does not begin, or ends, with a slash", cfg.Prefix)
	}
	return &Cluster{s: s, cfg: cfg, strays: map[string]struct{}{}}, nil
}

// Join implements [cluster.Membership]. The name of a dead instance is free when the
// servers have ended its session; Join waits for half as long again, because they are late.
func (c *Cluster) Join(ctx context.Context, m cluster.Member) (*cluster.Presence, error) {
	return cluster.Enter(ctx, m, cluster.PresenceConfig{Place: newPlace(c, m), Limit: c.soon(), OnError: c.cfg.OnError})
}

// Members implements [cluster.Membership]. A reading is one request, whatever the
// number of members, and one more if the session has not been confirmed of late.
func (c *Cluster) Members(ctx context.Context) iter.Seq2[cluster.View, error] {
	return watchDir(ctx, c, c.membersDir(), cluster.View.Equal, func(names []string) cluster.View {
		seats, ignored := c.seats(names)
		members := make([]cluster.Member, len(seats))
		for i, s := range seats {
			members[i] = s.member
		}
		return cluster.NewView(members, ignored)
	})
}

// Leaders implements [cluster.Board].
func (c *Cluster) Leaders(ctx context.Context, election string) iter.Seq2[cluster.Leader, error] {
	dir := c.electionDir(election)
	return watchDir(ctx, c, dir, cluster.Leader.Equal, func(names []string) (leader cluster.Leader) {
		notices, _ := entries(c, dir, names, func(e entry) (cluster.Leader, error) { return cluster.DecodeLeader(e.text) })
		for _, l := range notices {
			if l.Fence.Token > leader.Fence.Token {
				leader = l
			}
		}
		return leader
	})
}

// soon is how long one attempt may take: a third of the timeout of the session, so
// that what is wrong is known before the session is over.
func (c *Cluster) soon() time.Duration { return c.s.Timeout() / 3 }

// watchDir returns a sequence of what of makes of the children of a node.
func watchDir[T any](ctx context.Context, c *Cluster, dir string, equal func(a, b T) bool, of func(names []string) T) iter.Seq2[T, error] {
	return watch(ctx, c, equal, func(ctx context.Context, changed func()) (value T, stop func(), err error) {
		names, stop, err := c.list(ctx, dir, changed)
		if err != nil {
			return value, nil, err
		}
		return of(names), stop, nil
	})
}

// watch returns a sequence of what read returns. A server that is cut off from its
// leader goes on answering for a while; so readings that nothing has asked for, which
// come every third of the timeout, begin with a commit that changes nothing.
func watch[T any](ctx context.Context, c *Cluster, equal func(a, b T) bool, read func(ctx context.Context, changed func()) (T, func(), error)) iter.Seq2[T, error] {
	return cluster.Feed[T]{
		Read: func(ctx context.Context, changed func()) (value T, stop func(), err error) {
			if time.Since(c.s.Confirmed()) > c.soon()/2 {
				if err := c.s.Confirm(ctx); err != nil {
					return value, nil, err
				}
			}
			return read(ctx, changed)
		},
		Listen: func(changed func()) (stop func()) {
			return c.s.OnState(func(zookeeper.State) { changed() })
		},
		Equal: equal, Gap: c.cfg.Gap, Recheck: c.soon(), Timeout: c.soon(),
	}.Values(ctx)
}

// list returns the children of a container, which it makes if it is missing, and
// watches them.
func (c *Cluster) list(ctx context.Context, dir string, changed func()) (names []string, stop func(), err error) {
	for {
		names, _, stop, err = c.s.ChildrenW(ctx, dir, func(zookeeper.Event) { changed() })
		if !errors.Is(err, zk.ErrNoNode) {
			return names, stop, err
		}
		if err := c.s.EnsureContainer(ctx, dir); err != nil {
			return nil, nil, err
		}
	}
}
