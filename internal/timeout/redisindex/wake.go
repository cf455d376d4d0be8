package redisindex

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/timeout"
)

// waker passes moments to whoever consumes a shard.
type waker struct {
	mu sync.Mutex
	c  chan time.Time // has room for one
}

// notify stores the earlier of two moments that no waiter has taken yet: a claim that is too early finds nothing.
func (w *waker) notify(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case old := <-w.c:
		if old.Before(at) {
			at = old
		}
	default:
	}
	w.c <- at // there is room: nobody else sends
}

// Wake implements [timeout.Index]. All calls for a shard return the same channel.
// Messages of other processes arrive while Run runs.
func (x *Index) Wake(s timeout.Shard) <-chan time.Time {
	name := nameOf(s)
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.wakes[name]
	if w == nil {
		w = &waker{c: make(chan time.Time, 1)}
		x.wakes[name] = w
		if x.start != nil {
			x.start(name)
		}
	}
	return w.c
}

// announce returns the first arguments of a script that may make another timer the earliest: the command and channel of
// the notification.
func (x *Index) announce(k keySet) []any {
	args := make([]any, 0, 64)
	if x.cluster != nil {
		return append(args, "spublish", k.channel, k.name)
	}
	return append(args, "publish", k.channel, k.name)
}

// deliver passes on a script's result for the shard with that name: the moment of the earliest timer if that has become
// earlier, else "".
func (x *Index) deliver(name string, head any) {
	text, _ := head.(string)
	at, err := readTime(text)
	if err != nil {
		return
	}
	x.mu.Lock()
	w := x.wakes[name]
	x.mu.Unlock()
	if w != nil {
		w.notify(at)
	}
}

// Run implements [timeout.Index]: it receives messages until ctx ends, and returns
// nil. Without it, or while Redis is away, nothing but messages is missing.
func (x *Index) Run(ctx context.Context) error {
	var lines sync.WaitGroup
	defer lines.Wait()
	if x.cluster == nil {
		lines.Go(func() {
			x.listen(ctx, func() *redis.PubSub { return x.rdb.Subscribe(ctx, x.channel("")) })
		})
		<-ctx.Done()
		return nil
	}
	start := func(name string) {
		channel := x.channel(name)
		lines.Go(func() {
			x.listen(ctx, func() *redis.PubSub { return x.cluster.SSubscribe(ctx, channel) })
		})
	}
	x.mu.Lock()
	x.start = start
	for name := range x.wakes {
		start(name)
	}
	x.mu.Unlock()
	<-ctx.Done()
	x.mu.Lock()
	x.start = nil
	x.mu.Unlock()
	return nil
}

// listen receives messages on connections that open subscribes, until ctx ends.
func (x *Index) listen(ctx context.Context, open func() *redis.PubSub) {
	redisx.Subscribe(ctx, open, func(message any) {
		if m, ok := message.(*redis.Message); ok {
			name, head, _ := strings.Cut(m.Payload, " ")
			x.deliver(name, head)
		}
	})
}
