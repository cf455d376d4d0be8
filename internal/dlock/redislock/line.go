package redislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	linePing   = time.Second     // how often a line is tried
	lineSilent = 3 * time.Second // after that it is given up, and opened again
	shardIdle  = time.Second     // how long a sharded channel outlives its last wait
)

// line is one connection that receives pushes. One goroutine reads from it, and
// opens it again when it breaks.
type line struct {
	hub   *hub
	node  *redis.Client // in a cluster the node of its sharded channels; nil for the line of home
	sub   *redis.PubSub
	given atomic.Bool  // up, by try
	heard atomic.Int64 // when anything arrived, as nanoseconds after the epoch of the hub
}

// run is the goroutine of the line of home. It ends with the hub.
func (l *line) run() {
	ctx, channel := l.hub.ctx, l.hub.home()+l.hub.process
	for ctx.Err() == nil {
		l.sub = l.hub.rdb.Subscribe(ctx, channel)
		if errors.Is(l.receive(ctx), redis.ErrClosed) && !l.given.Swap(false) {
			return // the client was closed
		}
		select {
		case <-ctx.Done():
		case <-time.After(50*time.Millisecond + rand.N(100*time.Millisecond)):
		}
	}
}

// receive returns when the connection is broken, silent, or no longer wanted.
func (l *line) receive(ctx context.Context) error {
	sub := l.sub
	defer context.AfterFunc(ctx, func() { sub.Close() })()
	defer sub.Close()
	l.heard.Store(int64(time.Since(l.hub.epoch)))
	live, stop := context.WithCancel(ctx)
	defer stop()
	time.AfterFunc(linePing, func() { l.try(live, sub) })
	for {
		message, err := sub.Receive(ctx)
		if err != nil {
			return err
		}
		l.heard.Store(int64(time.Since(l.hub.epoch)))
		switch m := message.(type) {
		case *redis.Message:
			l.hub.deliver(m.Payload)
		case *redis.Subscription:
			l.hub.subscribed(m)
		}
	}
}

// try closes sub, which ends receive, if the connection does not live.
func (l *line) try(live context.Context, sub *redis.PubSub) {
	if live.Err() != nil {
		return
	}
	silent := time.Since(l.hub.epoch) - time.Duration(l.heard.Load())
	ctx, cancel := context.WithTimeout(live, linePing)
	defer cancel()
	if silent > lineSilent || sub.Ping(ctx) != nil {
		l.given.Store(true)
		sub.Close()
		return
	}
	time.AfterFunc(linePing, func() { l.try(live, sub) })
}

// subscribed tells waits to look again: what was pushed before is lost.
func (h *hub) subscribed(m *redis.Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waits := h.waits
	switch m.Kind {
	case "subscribe":
		if h.cluster != nil {
			return // only the process itself is pushed to by this one
		}
	case "ssubscribe":
		s := h.shards[m.Channel]
		if s == nil {
			return
		}
		waits = s.waits
	case "sunsubscribe": // perhaps by the server, whose slot has moved
		if s := h.shards[m.Channel]; s != nil && s.line != nil {
			s.line = nil
			h.attach(s)
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
	waits   map[string]*wait
	line    *line       // nil while it is not subscribed
	idle    *time.Timer // ends the shard some time after its last wait
}

// shard returns the shard of channel. It is called under mu.
func (h *hub) shard(channel string) *shard {
	s := h.shards[channel]
	if s == nil {
		s = &shard{channel: channel, waits: map[string]*wait{}}
		h.shards[channel] = s
		h.attach(s)
	}
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	return s
}

// rest ends s when it stays without waits. It is called under mu.
func (h *hub) rest(s *shard) {
	if len(s.waits) > 0 || s.idle != nil {
		return
	}
	s.idle = time.AfterFunc(shardIdle, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(s.waits) > 0 || h.shards[s.channel] != s {
			return
		}
		delete(h.shards, s.channel)
		if l := s.line; l != nil && !h.closed {
			s.line = nil
			h.joined.Go(func() {
				if l.sub.SUnsubscribe(h.ctx, s.channel) != nil {
					l.sub.Close() // its other channels subscribe again
				}
			})
		}
	})
}

// attach subscribes s in the background. It is called under mu.
func (h *hub) attach(s *shard) {
	if h.closed {
		return
	}
	h.joined.Go(func() {
		for h.ctx.Err() == nil && !h.subscribe(s) {
			select {
			case <-h.ctx.Done():
			case <-time.After(50*time.Millisecond + rand.N(100*time.Millisecond)):
			}
		}
	})
}

// subscribe reports whether s is on a line, or is not wanted any more. A
// connection takes channels of several slots, but one slot per command.
func (h *hub) subscribe(s *shard) bool {
	node, err := h.cluster.MasterForKey(h.ctx, s.channel)
	if err != nil {
		return false
	}
	h.mu.Lock()
	if h.closed || h.shards[s.channel] != s || s.line != nil {
		h.mu.Unlock()
		return true
	}
	addr := node.Options().Addr
	l := h.lines[addr]
	if l == nil {
		l = &line{hub: h, node: node, sub: node.SSubscribe(h.ctx)}
		h.lines[addr] = l
	} else {
		addr = ""
	}
	s.line = l
	h.mu.Unlock()
	err = l.sub.SSubscribe(h.ctx, s.channel)
	if addr != "" { // the line is new, and connected only now
		h.mu.Lock()
		if h.closed {
			l.sub.Close()
		} else {
			h.joined.Go(func() { l.serve(addr) })
		}
		h.mu.Unlock()
	}
	if err != nil {
		l.sub.Close() // ends serve, which attaches all shards of the line again
	}
	return true
}

// serve is the goroutine of a line of shards. When the connection breaks, its
// shards look for their nodes again.
func (l *line) serve(addr string) {
	_ = l.receive(l.hub.ctx) // the reason does not matter
	h := l.hub
	h.cluster.ReloadState(h.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lines, addr)
	for channel, s := range h.shards {
		if s.line != l {
			continue
		}
		s.line = nil
		if len(s.waits) > 0 {
			h.attach(s)
		} else {
			delete(h.shards, channel)
		}
	}
}
