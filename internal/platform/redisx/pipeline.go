package redisx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipeline lets concurrent callers share round trips. While a call or a pipeline is on its way, the next calls are
// collected. They follow one another, so two calls reach Redis in the order in which they were made. A pipeline has one
// goroutine while there are calls, except for a lone one.
type pipeline struct {
	rdb     redis.UniversalClient
	timeout time.Duration // bounds one round trip

	mu      sync.Mutex
	queue   []*call
	running bool
}

// call is one script call.
type call struct {
	Request
	Reply

	script Script
	ctx    context.Context //nolint:containedctx // Of the caller, who waits for the call.
	state  atomic.Int32
	done   chan struct{} // closed when the reply is set
}

// States of a call.
const (
	callQueued = iota
	callSent
	callLeft
)

// run makes one call: by itself if it is alone.
func (p *pipeline) run(ctx context.Context, s Script, r Request) (any, time.Time, error) {
	p.mu.Lock()
	if p.running {
		c := &call{script: s, Request: r, ctx: ctx, done: make(chan struct{})}
		p.queue = append(p.queue, c)
		p.mu.Unlock()
		return c.wait()
	}
	p.running = true
	p.mu.Unlock()
	defer p.next(ctx) // after a panic, too
	if ctx.Err() != nil {
		return nil, time.Time{}, unsent(ctx)
	}
	sent := time.Now()
	timed, done := leaving(ctx, sent.Add(p.timeout))
	defer done()
	reply, err := s.Run(timed, p.rdb, r.Keys, r.Args)
	return reply, sent, left(ctx, err)
}

// next ends a call that was alone.
func (p *pipeline) next(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running = len(p.queue) > 0; p.running {
		go p.flush(context.WithoutCancel(ctx))
	}
}

func (c *call) wait() (any, time.Time, error) {
	select {
	case <-c.done:
		return c.Value, c.Sent, c.Err
	case <-c.ctx.Done():
	}
	if c.state.CompareAndSwap(callQueued, callLeft) {
		return nil, time.Time{}, unsent(c.ctx)
	}
	select {
	case <-c.done:
		return c.Value, c.Sent, c.Err
	default:
		return nil, time.Time{}, c.ctx.Err()
	}
}

// flush sends pipelines until there are no more calls.
func (p *pipeline) flush(ctx context.Context) {
	for {
		p.mu.Lock()
		batch := p.queue
		p.queue = nil
		p.running = len(batch) > 0
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		p.send(ctx, batch)
	}
}

func (p *pipeline) send(ctx context.Context, batch []*call) {
	sent := time.Now()
	end := time.Time{}
	live := batch[:0]
	for _, c := range batch {
		if c.ctx.Err() != nil || !c.state.CompareAndSwap(callQueued, callSent) {
			c.Err = unsent(c.ctx)
			close(c.done)
			continue
		}
		c.Sent = sent
		if own, ok := c.ctx.Deadline(); ok && own.Sub(sent) < p.timeout {
			if own.After(end) {
				end = own
			}
		} else {
			end = sent.Add(p.timeout)
		}
		live = append(live, c)
	}
	if len(live) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	send(ctx, p.rdb, live)
	for _, c := range live {
		close(c.done)
	}
}

// send sends calls as one pipeline, and those again whose script the server does not know.
func send(ctx context.Context, rdb redis.UniversalClient, calls []*call) {
	cmds := make([]*redis.Cmd, len(calls))
	pipe := rdb.Pipeline()
	for i, c := range calls {
		cmds[i] = c.script.cmd(ctx, evalsha, c.Request)
		pipe.Process(ctx, Once{cmds[i]}) //nolint:errcheck // It only queues.
	}
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	again := false
	for i, c := range calls {
		c.Value, c.Err = cmds[i].Result()
		if c.script.unknown(c.Err) {
			cmds[i] = c.script.cmd(ctx, eval, c.Request)
			pipe.Process(ctx, Once{cmds[i]}) //nolint:errcheck // It only queues.
			again = true
		}
	}
	if !again {
		return
	}
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	for i, c := range calls {
		c.Value, c.Err = cmds[i].Result()
	}
}
