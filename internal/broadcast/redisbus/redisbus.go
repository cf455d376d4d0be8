package redisbus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/redisx"
)

// Bus is a [broadcast.Bus] on Redis.
type Bus struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // nil unless rdb is one
	publish string               // the command
	cfg     Config
	self    broadcast.ID // with the number 0
	out     outbox
	fan     *broadcast.Fanout
	echo    echo
	started atomic.Bool
	failed  atomic.Uint64
	foreign atomic.Uint64

	settled atomic.Bool // it has listened once for as long as the others need to answer

	origins origins // of the goroutine of listen
	failing bool    // of the goroutine of send: the last transmission has failed
}

var _ broadcast.Bus = (*Bus)(nil)

// New returns a Bus on rdb, which stays the caller's and is connected to when Run runs. It
// fails if rdb repeats commands by itself or ignores the deadlines of contexts, or if the
// configuration is not valid.
func New(rdb redis.UniversalClient, cfg Config) (*Bus, error) {
	self, invalid := broadcast.NewOrigin(cfg.Instance)
	if err := errors.Join(redisx.Check(rdb), cfg.Validate(), invalid); err != nil {
		return nil, fmt.Errorf("redisbus: %w", err)
	}
	cfg = cfg.withDefaults()
	fan, err := broadcast.NewFanout(cfg.Queue)
	if err != nil {
		return nil, fmt.Errorf("redisbus: %w", err)
	}
	b := &Bus{
		rdb: rdb, publish: "publish", cfg: cfg, self: self.Last(), fan: fan,
		out:     outbox{room: cfg.Outbox, wake: make(chan struct{}, 1), origin: self},
		origins: origins{by: map[origin]*last{}},
	}
	if b.cluster, _ = rdb.(*redis.ClusterClient); b.cluster != nil {
		b.publish = "spublish"
	}
	return b, nil
}

// Publish implements [broadcast.Bus].
func (b *Bus) Publish(topic, payload string) error { return b.out.put(topic, payload) }

// Subscribe implements [broadcast.Bus].
func (b *Bus) Subscribe(patterns ...string) (*broadcast.Subscription, error) {
	return b.fan.Subscribe(patterns...)
}

// Stats implements [broadcast.Bus].
func (b *Bus) Stats() broadcast.Stats {
	s := b.fan.Stats()
	s.Published, s.Dropped = b.out.stats()
	s.Failed, s.Foreign = b.failed.Load(), b.foreign.Load()
	return s
}

// Run implements [broadcast.Bus]. It opens connections again for as long as it takes,
// and returns within twice Config.Timeout after ctx has ended.
func (b *Bus) Run(ctx context.Context) error {
	if !b.started.CompareAndSwap(false, true) {
		return errors.New("redisbus: Run is called twice")
	}
	var group sync.WaitGroup
	group.Go(func() {
		defer b.fan.Close() // readers need not wait for what is sent last
		b.listen(ctx)
	})
	group.Go(func() { b.send(ctx) })
	group.Wait()
	return nil
}
