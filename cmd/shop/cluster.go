package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/memcluster"
	"example.com/shop/internal/cluster/rediscluster"
	"example.com/shop/internal/cluster/zkcluster"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/zookeeper"
)

const (
	joinPause  = 5 * time.Second // before a name that another instance has is tried again
	leaveLimit = 2 * time.Second
)

// node is this instance in the cluster: what it knows of the others, who leads, and the
// configuration that all share. With --zookeeper all of it is there; with --redis alone the
// configuration is that of the flags; without both an instance knows only itself, and the
// database elects the leader.
type node struct {
	membership cluster.Membership
	settings   *cluster.Settings
	lead       *leadership
	self       cluster.Member
	candidate  bool
	roster     roster // of the goroutine that follows the members
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
func openNode(ctx context.Context, c serveConfig, session *zookeeper.Session, l locks, lockers stock.Lockers, told *news, log *slog.Logger) (*node, error) {
	n := &node{
		self:      cluster.Member{Name: c.instance, Role: role(c), Version: version(), Started: time.Now()},
		candidate: !c.canary, lead: newLeadership(c.instance, log), roster: roster{self: c.instance, news: told}, log: log, stale: make(map[string]error),
	}
	if c.lane == timeout.Base { // the leader of a lane is not that of the shop
		n.lead.news = told
	}
	var board cluster.Board
	var store cluster.ConfigStore = cluster.Fixed{}
	locker := lockers.SQL
	warn := func(err error) { log.WarnContext(ctx, "cluster", slog.String("error", err.Error())) }
	switch {
	case session != nil:
		zk, err := zkcluster.New(session, zkcluster.Config{OnError: warn})
		if err != nil {
			return nil, err
		}
		n.membership, board, store, locker = zk, zk, zk, lockers.ZooKeeper
	case l.rdb != nil:
		r, err := rediscluster.New(l.rdb, rediscluster.Config{OnError: warn})
		if err != nil {
			return nil, err
		}
		n.membership, board, locker = r, r, lockers.Redis
	default:
		m := new(memcluster.Cluster)
		n.membership, board = m, m
	}
	var err error
	n.lead.election, err = cluster.NewElection(cluster.ElectionConfig{
		Locker: locker, Board: board, Name: c.instance, Key: electionOf(c.lane), OnError: n.lead.trouble,
	})
	if err != nil {
		return nil, err
	}
	if n.settings, err = cluster.NewSettings(cluster.SettingsConfig{Store: store, OnError: warn}); err != nil {
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

// define names the settings that can be changed while instances run. Their defaults are the flags.
func (n *node) define(c serveConfig) (err error) {
	n.permits, err = cluster.Define(n.settings, cluster.Key[int]{
		Name: "permits", Default: c.permits, Parse: parsed("permits", "a whole number", strconv.Atoi), Validate: func(p int) error {
			if c.permits == 0 && p != 0 {
				return errors.New("the instances were started with --permits 0, which has no bound")
			}
			return within("permits", p, min(c.permits, 1), 1_000_000)
		},
	})
	if err != nil {
		return err
	}
	n.orderTTL, err = cluster.Define(n.settings, cluster.Key[time.Duration]{
		Name: "order-ttl", Default: c.orderTTL, Parse: parsed("order-ttl", aDuration, time.ParseDuration), Validate: validOrderTTL,
	})
	if err != nil {
		return err
	}
	n.pace, err = cluster.Define(n.settings, cluster.Key[time.Duration]{
		Name: "reconciler-pace", Default: time.Second, Parse: parsed("reconciler-pace", aDuration, time.ParseDuration), Validate: func(d time.Duration) error {
			if d < 100*time.Millisecond || d > time.Minute {
				return fmt.Errorf("reconciler-pace %s: want 100ms to 1m", d)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	n.logLevel, err = cluster.Define(n.settings, cluster.Key[slog.Level]{
		Name: "log-level", Default: c.logLevel,
		Parse: func(text string) (l slog.Level, err error) {
			if l.UnmarshalText([]byte(text)) != nil {
				return l, fmt.Errorf("log-level %q: want debug, info, warn or error", text)
			}
			return l, nil
		},
	})
	return err
}

// parsed returns parse with an error that names the setting, the text and the form that it wants.
func parsed[T any](name, form string, parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (T, error) {
		v, err := parse(text)
		if err != nil {
			err = fmt.Errorf("%s %q: want %s", name, text, form)
		}
		return v, err
	}
}

// role says in a word what an instance does.
func role(c serveConfig) string {
	switch {
	case c.canary:
		return "canary"
	case c.lane != timeout.Base:
		return "lane " + c.lane
	}
	return "shop"
}

// electionOf names the election of those who look after the timers of a lane.
func electionOf(lane string) string {
	if lane == timeout.Base {
		return "leader"
	}
	return "leader." + lane
}

// within returns an error unless low <= n <= high.
func within(name string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%s %d: want %d to %d", name, n, low, high)
	}
	return nil
}

// live are the parts of an instance that a change of the configuration reaches.
type live struct {
	permits   func(ctx context.Context, n int) error
	permitted func() int // how many permits there are, as far as known
	orderTTL  func(time.Duration)
	pace      func(time.Duration)
	logLevel  *slog.LevelVar
}

// run makes the instance, which is reached at address, a member, a candidate, and one who
// follows the configuration, until ctx ends.
func (n *node) run(address string, to live) func(context.Context) error {
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
					n.roster.look(view)
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
			g.Go(func() error { return n.lead.run(ctx) })
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

// join keeps the instance a member. A name that another live instance has is no reason to stop
// selling. One whose name a later one has taken over, at the same address, comes back when that has gone: if it came
// before, the two would take turns.
func (n *node) join(ctx context.Context) {
	for ctx.Err() == nil {
		p, err := n.membership.Join(ctx, n.self)
		if err == nil {
			select {
			case <-ctx.Done():
				leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
				defer cancel()
				if err := p.Leave(leaving); err != nil {
					n.log.WarnContext(ctx, "leave the cluster", slog.String("error", err.Error()))
				}
				return
			case <-p.Done():
				err = p.Err()
			}
		}
		if ctx.Err() != nil {
			return
		}
		n.log.WarnContext(ctx, "not a member of the cluster", slog.String("error", err.Error()))
		for wait := true; wait; wait = ctx.Err() == nil && errors.Is(err, cluster.ErrReplaced) && n.listed() {
			select {
			case <-ctx.Done():
			case <-time.After(joinPause):
			}
		}
	}
}

// listed reports whether there is a member with the name of this instance.
func (n *node) listed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.view.Members, func(m cluster.Member) bool { return m.Name == n.self.Name })
}

// follow applies changes of the configuration.
func (n *node) follow(ctx context.Context, to live) {
	var group sync.WaitGroup
	group.Go(func() {
		for level := range n.logLevel.Watch(ctx) {
			to.logLevel.Set(level)
		}
	})
	group.Go(func() {
		for ttl := range n.orderTTL.Watch(ctx) {
			to.orderTTL(ttl)
		}
	})
	group.Go(func() {
		for pace := range n.pace.Watch(ctx) {
			to.pace(pace)
		}
	})
	group.Go(func() { n.resize(ctx, to.permits) })
	group.Go(func() { n.restore(ctx, to) })
	group.Wait()
}

// resize gives the permits their number, again and again until that has worked. They begin with the
// default, and have it again when the setting is deleted.
func (n *node) resize(ctx context.Context, permits func(context.Context, int) error) {
	set := false
	for number, version := range n.permits.Watch(ctx) {
		set = set || version > 0
		for set && ctx.Err() == nil {
			err := permits(ctx, number)
			if err == nil {
				break
			}
			n.log.WarnContext(ctx, "the number of permits", slog.Int("permits", number), slog.String("error", err.Error()))
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			if _, latest := n.permits.Get(); latest != version {
				break
			}
		}
	}
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
