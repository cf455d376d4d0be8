package redisx

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipeline lets concurrent callers share round trips. While a call or a pipeline is on its way, the next calls are
// collected. They follow one another. So a call reaches Redis after the calls whose replies have arrived, and in the order
// of those that it was collected with. A call that was cut on its way may arrive later, and RunAll waits for no pipeline. A
// pipeline has one goroutine while there are calls, except for a lone one.
type pipeline struct {
	caller *Caller

	mu      sync.Mutex
	queue   []*call
	running bool
}

// call is one script call.
type call struct {
	Request
	Reply

	script Script
	cmd    *redis.Cmd
	ctx    context.Context //nolint:containedctx // Of the caller, who waits for the call.
	done   chan struct{}   // closed when the reply is set
}

// run makes one call: by itself if it is alone.
func (p *pipeline) run(c *call) Reply {
	p.mu.Lock()
	if p.running {
		c.done = make(chan struct{})
		p.queue = append(p.queue, c)
		p.mu.Unlock()
		return p.wait(c)
	}
	p.running = true
	p.mu.Unlock()
	defer p.next(c.ctx) // after a panic, too
	p.caller.alone(c.ctx, c)
	return c.Reply
}

// next ends a call that was alone.
func (p *pipeline) next(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running = len(p.queue) > 0; p.running {
		go p.flush(context.WithoutCancel(ctx))
	}
}

// wait returns the reply, or when the caller leaves.
func (p *pipeline) wait(c *call) Reply {
	select {
	case <-c.done:
		return c.Reply
	case <-c.ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, c); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		return Reply{Err: unsent(c.ctx)}
	}
	select {
	case <-c.done:
		return c.Reply
	default:
		return Reply{Err: c.ctx.Err()}
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

// send makes the calls whose callers are still there.
func (p *pipeline) send(ctx context.Context, batch []*call) {
	sent, end := time.Now(), time.Time{}
	batch = slices.DeleteFunc(batch, func(c *call) bool {
		if c.ctx.Err() != nil {
			c.Err = unsent(c.ctx)
			close(c.done)
			return true
		}
		if c.Sent = sent; end.Before(sooner(c.ctx, sent.Add(p.caller.timeout))) {
			end = sooner(c.ctx, sent.Add(p.caller.timeout))
		}
		return false
	})
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	send(ctx, p.caller.rdb, batch)
	for _, c := range batch {
		close(c.done)
	}
}

// send makes calls in one round trip, and once more those whose script the server does not know: with its text.
func send(ctx context.Context, rdb redis.UniversalClient, calls []*call) {
	for _, name := range []any{evalsha, eval} {
		if len(calls) == 1 {
			rdb.Process(ctx, calls[0].by(ctx, name)) //nolint:errcheck // The command has the error.
		} else {
			pipe := rdb.Pipeline()
			for _, c := range calls {
				pipe.Process(ctx, c.by(ctx, name)) //nolint:errcheck // It only queues.
			}
			pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
		}
		var again []*call
		for _, c := range calls {
			c.Value, c.Err = c.cmd.Result()
			if c.script.text != "" && redis.HasErrorPrefix(c.Err, "NOSCRIPT") {
				again = append(again, c)
			}
		}
		if calls = again; len(calls) == 0 {
			return
		}
	}
}

// Names of commands, as arguments of a command.
var evalsha, eval any = "evalsha", "eval"

// by returns the command of a call by EVALSHA or EVAL.
func (c *call) by(ctx context.Context, name any) redis.Cmder {
	called := c.script.sha
	if name == eval {
		called = c.script.text
	}
	all := append(make([]any, 0, 3+len(c.Keys)+len(c.Args)), name, called, len(c.Keys))
	for _, key := range c.Keys {
		all = append(all, key)
	}
	c.cmd = redis.NewCmd(ctx, append(all, c.Args...)...)
	c.cmd.SetFirstKeyPos(3)
	return Once{c.cmd}
}
