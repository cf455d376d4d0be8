package redislock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

// maxBatch bounds a pipeline, and with it how long the first of its replies waits for the last.
const maxBatch = 512

// errUnsent is for a call whose caller left before it was sent: it had no effect.
var errUnsent = errors.New("redislock: not sent")

// batcher lets concurrent callers share round trips: while one pipeline is on its
// way the calls for the next one collect, so that a lone caller waits for nobody
// and many callers cost few round trips. Pipelines follow one another, so that two
// calls reach Redis in the order in which they were made. It has one goroutine
// while there are calls.
type batcher struct {
	rdb     redis.UniversalClient
	timeout time.Duration // bounds one pipeline

	mu      sync.Mutex
	queue   []*call
	running bool
}

// script is a Lua script and the name by which a server knows it.
type script struct{ text, sha string }

// newScript joins parts to one script.
func newScript(parts ...string) script {
	text := strings.Join(parts, "\n")
	return script{text, redis.NewScript(text).Hash()}
}

// call is one script call.
type call struct {
	ctx    context.Context //nolint:containedctx // Of the caller, who waits for the call.
	script script
	keys   []string
	args   []any
	state  atomic.Int32
	sent   time.Time
	reply  any
	err    error
	done   chan struct{} // closed when the fields above are set
}

// States of a call.
const (
	callQueued = iota
	callSent
	callLeft
)

func newBatcher(rdb redis.UniversalClient, timeout time.Duration) *batcher {
	return &batcher{rdb: rdb, timeout: timeout}
}

// run makes one call. The reply is nil with an error. The time is when the call
// was sent, or a little before. It returns when ctx ends, even while the call is
// under way: then its outcome is unknown, unless the error is errUnsent.
func (b *batcher) run(ctx context.Context, script script, keys []string, args ...any) (any, time.Time, error) {
	return b.start(ctx, script, keys, args...).wait()
}

// start makes a call whose reply the caller waits for later.
func (b *batcher) start(ctx context.Context, script script, keys []string, args ...any) *call {
	c := &call{ctx: ctx, script: script, keys: keys, args: args, done: make(chan struct{})}
	b.mu.Lock()
	b.queue = append(b.queue, c)
	idle := !b.running
	b.running = true
	b.mu.Unlock()
	if idle {
		go b.flush(context.WithoutCancel(ctx))
	}
	return c
}

func (c *call) wait() (any, time.Time, error) {
	select {
	case <-c.done:
		return c.reply, c.sent, c.err
	case <-c.ctx.Done():
	}
	if c.state.CompareAndSwap(callQueued, callLeft) {
		return nil, time.Time{}, errors.Join(errUnsent, dlock.Ended(c.ctx))
	}
	select {
	case <-c.done:
		return c.reply, c.sent, c.err
	default:
		return nil, time.Time{}, dlock.Ended(c.ctx)
	}
}

// flush sends pipelines until there are no more calls.
func (b *batcher) flush(ctx context.Context) {
	for {
		b.mu.Lock()
		n := min(len(b.queue), maxBatch)
		batch := b.queue[:n:n]
		b.queue = b.queue[n:]
		if len(b.queue) == 0 {
			b.queue = nil
		}
		b.running = n > 0
		b.mu.Unlock()
		if n == 0 {
			return
		}
		b.send(ctx, batch)
	}
}

func (b *batcher) send(ctx context.Context, batch []*call) {
	sent := time.Now()
	end := time.Time{}
	live := batch[:0]
	for _, c := range batch {
		if c.ctx.Err() != nil || !c.state.CompareAndSwap(callQueued, callSent) {
			c.finish(nil, errors.Join(errUnsent, dlock.Ended(c.ctx)))
			continue
		}
		c.sent = sent
		if own, ok := c.ctx.Deadline(); ok && own.Sub(sent) < b.timeout {
			if own.After(end) {
				end = own
			}
		} else {
			end = sent.Add(b.timeout)
		}
		live = append(live, c)
	}
	if len(live) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	unknown := b.exec(ctx, live, func(p redis.Pipeliner, c *call) *redis.Cmd {
		return p.EvalSha(ctx, c.script.sha, c.keys, c.args...)
	})
	if len(unknown) == 0 {
		return
	}
	// The server has lost its scripts: these calls had no effect.
	b.exec(ctx, unknown, func(p redis.Pipeliner, c *call) *redis.Cmd {
		return p.Eval(ctx, c.script.text, c.keys, c.args...)
	})
}

// exec sends calls as one pipeline, and returns those whose script is unknown.
func (b *batcher) exec(ctx context.Context, calls []*call, add func(redis.Pipeliner, *call) *redis.Cmd) []*call {
	pipe := b.rdb.Pipeline()
	replies := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		replies[i] = add(pipe, c)
	}
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	var unknown []*call
	for i, c := range calls {
		reply, err := replies[i].Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			unknown = append(unknown, c)
			continue
		}
		c.finish(reply, err)
	}
	return unknown
}

func (c *call) finish(reply any, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}
