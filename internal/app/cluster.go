package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/cluster/zkcluster"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/zookeeper"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/timeout"
)

const (
	// electionTTL is how long a leader leads after it died, and how long an instance without ZooKeeper is listed.
	electionTTL = 5 * time.Second

	joinPause  = 5 * time.Second // before a name that another instance has is tried again
	leaveLimit = 2 * time.Second
)

// node is this instance in the cluster: the members, the leader, and the configuration that all share. The leader is in
// the database. Without --zookeeper, members are too, and the configuration is that of the flags.
type node struct {
	membership cluster.Membership
	settings   *cluster.Settings
	lead       *leadership
	self       cluster.Member
	candidate  bool
	members    membershipDiff // of the goroutine that follows the members
	log        *slog.Logger

	permits  *cluster.Setting[int]
	orderTTL *cluster.Setting[time.Duration]
	pace     *cluster.Setting[time.Duration]
	logLevel *cluster.Setting[slog.Level]

	mu     sync.Mutex
	view   cluster.View
	leader cluster.Leader
	stale  map[string]error // why what is known may be old
}

// openNode prepares the instance to be a member; run makes it one.
func openNode(ctx context.Context, c Config, session *zookeeper.Session, store *sqlstore.Store, published *eventLog, log *slog.Logger) (*node, error) {
	n := &node{
		self:      cluster.Member{Name: c.Instance, Role: role(c), Version: c.Version, Started: time.Now()},
		candidate: !c.Canary, lead: &leadership{events: published, log: log}, members: membershipDiff{self: c.Instance, events: published}, log: log, stale: make(map[string]error),
	}
	warn := seldom(func(err error) {
		log.WarnContext(ctx, "cluster operation failed", slog.String("error", err.Error()))
	})
	rows, err := store.Cluster(sqlcluster.Config{TTL: electionTTL, OnError: warn})
	if err != nil {
		return nil, err
	}
	if n.lead.election, err = rows.Election("leader", c.Instance); err != nil {
		return nil, err
	}
	n.membership = rows
	var configured cluster.ConfigStore = cluster.Fixed{}
	if session != nil {
		zk, err := zkcluster.New(session, zkcluster.Config{OnError: warn})
		if err != nil {
			return nil, err
		}
		n.membership, configured = zk, zk
	}
	if n.settings, err = cluster.NewSettings(cluster.SettingsConfig{Store: configured, OnError: warn}); err != nil {
		return nil, err
	}
	if err := n.define(c); err != nil {
		return nil, err
	}
	if session != nil && session.State() != zookeeper.Connected {
		return n, nil // run will load them
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := n.settings.Load(ctx); err != nil {
		warn(err) // what is not there has its default
	}
	return n, nil
}

// warnEvery is the least time between two reports of the same error.
const warnEvery = 10 * time.Second

// seldom returns report without repetitions: while a database is not there, each renewal fails, several times a second.
func seldom(report func(error)) func(error) {
	var mu sync.Mutex
	reported := make(map[string]time.Time)
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(reported, func(_ string, at time.Time) bool { return time.Since(at) >= warnEvery })
		if _, again := reported[err.Error()]; !again {
			reported[err.Error()] = time.Now()
			report(err)
		}
	}
}

// role says in a word what an instance does.
func role(c Config) string {
	switch {
	case c.Canary:
		return "canary"
	case c.Partition != timeout.Base:
		return "partition " + c.Partition
	}
	return "shop"
}

// run makes the instance, which is reached at address, a member, a candidate, and one who
// follows the configuration, until ctx ends.
func (n *node) run(address string, to reloadable) func(context.Context) error {
	n.self.Address = address
	return func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return n.settings.Run(ctx) })
		g.Go(func() error { n.follow(ctx, to); return nil })
		g.Go(func() error { n.join(ctx); return nil })
		g.Go(func() error {
			for view, err := range n.membership.Members(ctx) {
				n.know("members", err, func() { n.view = view })
				if err == nil {
					n.members.compare(view)
				}
			}
			return nil
		})
		g.Go(func() error {
			for leader, err := range n.lead.election.Observe(ctx) {
				n.know("leader", err, func() { n.leader = leader })
			}
			return nil
		})
		if n.candidate {
			g.Go(func() error { n.lead.run(ctx); return nil })
		}
		return g.Wait()
	}
}

func (n *node) know(what string, err error, set func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set()
	delete(n.stale, what)
	if err != nil {
		n.stale[what] = err
	}
}

// join keeps the instance a member. An instance whose name another live instance has continues to sell. If a later
// instance at the same address has taken over the name, this instance joins again only when that one has left.
// Otherwise the two would take turns.
func (n *node) join(ctx context.Context) {
	for ctx.Err() == nil {
		p, err := n.membership.Join(ctx, n.self)
		if err == nil {
			select {
			case <-ctx.Done():
				leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
				defer cancel()
				if err := p.Leave(leaving); err != nil {
					n.log.WarnContext(ctx, "instance not removed from the cluster; its entry expires", slog.String("error", err.Error()))
				}
				return
			case <-p.Done():
				err = p.Err()
			}
		}
		if ctx.Err() != nil {
			return
		}
		n.log.WarnContext(ctx, "instance is not a member of the cluster", slog.String("error", err.Error()))
		for wait := true; wait; wait = ctx.Err() == nil && errors.Is(err, cluster.ErrReplaced) && n.listed() {
			backoff.Sleep(ctx, joinPause)
		}
	}
}

// listed reports whether there is a member with the name of this instance.
func (n *node) listed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.view.Members, func(m cluster.Member) bool { return m.Name == n.self.Name })
}

// size returns how many members there are, as last read.
func (n *node) size() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.view.Members)
}

// Members implements [httpapi.Cluster].
func (n *node) Members() ([]cluster.Member, cluster.Leader, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.Members, n.leader, errors.Join(n.stale["members"], n.stale["leader"], n.settings.Stale())
}

// Settings implements [httpapi.Cluster].
func (n *node) Settings() []cluster.State { return n.settings.All() }

// Set implements [httpapi.Cluster].
func (n *node) Set(ctx context.Context, name, value string, version int64) (int64, error) {
	return n.settings.Set(ctx, name, value, version)
}
