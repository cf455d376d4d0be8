package redisx

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/backoff"
)

// shardIdle is how long a sharded channel outlives its last wait.
const shardIdle = time.Second

// subscription is one connection that receives pushes.
type subscription struct {
	notifier *Notifier
	node     *redis.Client // in a cluster the node of its sharded channels; nil for the subscription of home
	sub      *redis.PubSub // of node
}

// run is the goroutine of the subscription of home. It ends with the Notifier, or when the client is closed.
func (l *subscription) run() {
	ctx, stop := context.WithCancel(l.notifier.ctx)
	defer stop()
	channel := l.notifier.Home() + l.notifier.process
	Subscribe(ctx, func() *redis.PubSub { return l.notifier.rdb.Subscribe(ctx, channel) }, func(message any) {
		if err, failed := message.(error); failed && errors.Is(err, redis.ErrClosed) {
			stop()
		}
		l.handle(message)
	})
}

func (l *subscription) handle(message any) {
	switch m := message.(type) {
	case *redis.Message:
		l.notifier.deliver(m.Payload)
	case *redis.Subscription:
		l.notifier.subscribed(m)
	}
}

// subscribed makes waits poll again: earlier messages are lost.
func (n *Notifier) subscribed(m *redis.Subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	waits := n.waits
	switch m.Kind {
	case "subscribe":
		if n.cluster != nil {
			return // only the process itself is pushed to by this one
		}
	case "ssubscribe":
		s := n.shards[m.Channel]
		if s == nil {
			return
		}
		waits = s.waits
	case "sunsubscribe": // perhaps by the server, whose slot has moved
		if s := n.shards[m.Channel]; s != nil && s.on != nil {
			s.on = nil
			n.attach(s)
		}
		return
	default:
		return
	}
	for _, w := range waits {
		w.push("")
	}
}

// shard is a sharded channel with the waits of one hash tag.
type shard struct {
	channel string
	waits   map[string]*Wait
	on      *subscription // nil while it is not subscribed
	idle    *time.Timer   // ends the shard some time after its last wait
}

// shard returns the shard of channel. It is called under mu.
func (n *Notifier) shard(channel string) *shard {
	s := n.shards[channel]
	if s == nil {
		s = &shard{channel: channel, waits: map[string]*Wait{}}
		n.shards[channel] = s
		n.attach(s)
	}
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	return s
}

// rest ends s when it stays without waits. It is called under mu.
func (n *Notifier) rest(s *shard) {
	if len(s.waits) > 0 || s.idle != nil {
		return
	}
	s.idle = time.AfterFunc(shardIdle, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(s.waits) > 0 || n.shards[s.channel] != s {
			return
		}
		delete(n.shards, s.channel)
		if l := s.on; l != nil && !n.closed {
			s.on = nil
			n.joined.Go(func() {
				if l.sub.SUnsubscribe(n.ctx, s.channel) != nil {
					l.sub.Close() // its other channels subscribe again
				}
			})
		}
	})
}

// attach subscribes s in the background. It is called under mu.
func (n *Notifier) attach(s *shard) {
	if n.closed {
		return
	}
	n.joined.Go(func() {
		for n.ctx.Err() == nil && !n.subscribe(s) {
			backoff.Jitter(n.ctx, retryPause)
		}
	})
}

// subscribe reports whether s is on a line, or is not wanted any more. A
// connection takes channels of several slots, but one slot per command.
func (n *Notifier) subscribe(s *shard) bool {
	node, err := n.cluster.MasterForKey(n.ctx, s.channel)
	if err != nil {
		return false
	}
	n.mu.Lock()
	if n.closed || n.shards[s.channel] != s || s.on != nil {
		n.mu.Unlock()
		return true
	}
	addr := node.Options().Addr
	l := n.subscriptions[addr]
	if l == nil {
		l = &subscription{notifier: n, node: node, sub: node.SSubscribe(n.ctx)}
		n.subscriptions[addr] = l
	} else {
		addr = ""
	}
	s.on = l
	n.mu.Unlock()
	err = l.sub.SSubscribe(n.ctx, s.channel)
	if addr != "" { // the subscription is new, and connected only now
		n.mu.Lock()
		if n.closed {
			l.sub.Close()
		} else {
			n.joined.Go(func() { l.serve(addr) })
		}
		n.mu.Unlock()
	}
	if err != nil {
		l.sub.Close() // ends serve, which attaches all shards of the line again
	}
	return true
}

// serve is the goroutine of a line of shards. When the connection breaks, its
// shards look for their nodes again.
func (l *subscription) serve(addr string) {
	_ = receive(l.notifier.ctx, l.sub, func(message any) error { // the reason does not matter
		l.handle(message)
		return nil
	})
	n := l.notifier
	n.cluster.ReloadState(n.ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.subscriptions, addr)
	for channel, s := range n.shards {
		if s.on != l {
			continue
		}
		s.on = nil
		if len(s.waits) > 0 {
			n.attach(s)
		} else {
			delete(n.shards, channel)
		}
	}
}
