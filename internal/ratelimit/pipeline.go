package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// gatherer lets the scripts of many callers share round trips: while one pipeline is on its
// way those of the next one gather. A lone caller waits for nobody. It has one goroutine while
// there are calls.
type gatherer struct {
	redis.UniversalClient

	timeout time.Duration // bounds a pipeline

	mu      sync.Mutex
	next    []*gathered
	sending bool
}

// gathered is the call of one script.
type gathered struct {
	ctx  context.Context //nolint:containedctx // Of the caller, who waits for the call.
	cmd  *redis.Cmd
	done chan struct{} // closed when cmd has its reply
}

// maxGathered bounds a pipeline, and with it how long its first reply waits for the last.
const maxGathered = 256

// EvalSha is that of [redis.UniversalClient]. It returns when ctx ends: then the script has run
// or not.
func (g *gatherer) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", sha, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	c := &gathered{ctx, redis.NewCmd(ctx, append(all, args...)...), make(chan struct{})}
	c.cmd.SetFirstKeyPos(3)
	g.mu.Lock()
	g.next = append(g.next, c)
	idle := !g.sending
	g.sending = true
	g.mu.Unlock()
	if idle {
		go g.send() // ends with the calls, each of which the timeout bounds
	}
	select {
	case <-c.done:
		return c.cmd
	case <-ctx.Done():
		left := redis.NewCmd(ctx)
		left.SetErr(context.Cause(ctx))
		return left
	}
}

// send sends pipelines until there are no more calls.
func (g *gatherer) send() {
	for {
		g.mu.Lock()
		n := min(len(g.next), maxGathered)
		calls := g.next[:n:n]
		g.next = g.next[n:]
		if len(g.next) == 0 {
			g.next = nil
		}
		g.sending = n > 0
		g.mu.Unlock()
		if n == 0 {
			return
		}
		g.pipeline(calls)
	}
}

// pipeline sends those of calls that somebody waits for. It belongs to the trace of the first.
func (g *gatherer) pipeline(calls []*gathered) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(calls[0].ctx), g.timeout)
	defer cancel()
	p := g.Pipeline()
	for _, c := range calls {
		if c.ctx.Err() == nil {
			p.Process(ctx, c.cmd) //nolint:errcheck // It only queues.
		}
	}
	p.Exec(ctx) //nolint:errcheck // Every command has its own error.
	for _, c := range calls {
		close(c.done)
	}
}
