package redisx

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxBatch bounds a pipeline, and with it how long the first of its replies waits for the last.
const maxBatch = 512

// ErrUnsent is for a call whose caller left before it was sent: it had no effect.
var ErrUnsent = errors.New("redisx: not sent")

// pipeline lets concurrent callers share round trips. While one pipeline is on its way, the next calls are collected.
// So a lone caller does not wait, and many callers cost few round trips. Pipelines follow one another, so two calls
// reach Redis in the order in which they were made. It has one goroutine while there are calls.
type pipeline struct {
	rdb     redis.UniversalClient
	timeout time.Duration // bounds one pipeline

	mu      sync.Mutex
	queue   []*Call
	running bool

	apart bool           // calls do not share commands
	last  map[string]int // by key, the last group that has it; empty between two batches
}

// Call is one script call.
type Call struct {
	ctx    context.Context //nolint:containedctx // Of the caller, who waits for the call.
	script Script
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

func newCall(ctx context.Context, script Script, keys []string, args []any) *Call {
	return &Call{ctx: ctx, script: script, keys: keys, args: args, done: make(chan struct{})}
}

// start adds calls to the next pipeline.
func (p *pipeline) start(ctx context.Context, calls ...*Call) {
	p.mu.Lock()
	p.queue = append(p.queue, calls...)
	idle := !p.running
	p.running = true
	p.mu.Unlock()
	if idle {
		go p.flush(context.WithoutCancel(ctx))
	}
}

// Wait returns the reply, or why there is none. The cause of the context is not among the
// reasons: it may look like an answer of Redis, and callers classify the error. They add
// it when they have done so.
func (c *Call) Wait() (any, time.Time, error) {
	select {
	case <-c.done:
		return c.reply, c.sent, c.err
	case <-c.ctx.Done():
	}
	if c.state.CompareAndSwap(callQueued, callLeft) {
		return nil, time.Time{}, errors.Join(ErrUnsent, c.ctx.Err())
	}
	select {
	case <-c.done:
		return c.reply, c.sent, c.err
	default:
		return nil, time.Time{}, c.ctx.Err()
	}
}

// flush sends pipelines until there are no more calls.
func (p *pipeline) flush(ctx context.Context) {
	for {
		p.mu.Lock()
		n := min(len(p.queue), maxBatch)
		batch := p.queue[:n:n]
		p.queue = p.queue[n:]
		if len(p.queue) == 0 {
			p.queue = nil
		}
		p.running = n > 0
		p.mu.Unlock()
		if n == 0 {
			return
		}
		p.send(ctx, batch)
	}
}

func (p *pipeline) send(ctx context.Context, batch []*Call) {
	sent := time.Now()
	end := time.Time{}
	live := batch[:0]
	for _, c := range batch {
		if c.ctx.Err() != nil || !c.state.CompareAndSwap(callQueued, callSent) {
			c.finish(nil, errors.Join(ErrUnsent, c.ctx.Err()))
			continue
		}
		c.sent = sent
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
	if refused := p.exec(ctx, live, "evalsha"); len(refused) > 0 {
		p.exec(ctx, refused, "eval")
	}
}

// exec sends calls as one pipeline. With EVALSHA it returns those that had no effect, and are to be sent with EVAL. The
// server has lost their script, or does not take calls of several slots together. Then it gets them apart from now on.
func (p *pipeline) exec(ctx context.Context, calls []*Call, name string) (refused []*Call) {
	pipe := p.rdb.Pipeline()
	groups := p.group(calls)
	replies := make([]*redis.Cmd, len(groups))
	for i, group := range groups {
		replies[i] = redis.NewCmd(ctx, group.command(name)...)
		replies[i].SetFirstKeyPos(3)
		pipe.Process(ctx, Once{replies[i]}) //nolint:errcheck // It only queues.
	}
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	for i, group := range groups {
		reply, err := replies[i].Result()
		slots := len(group) > 1 && redis.HasErrorPrefix(err, "CROSSSLOT")
		if slots || group[0].script.text != "" && redis.HasErrorPrefix(err, "NOSCRIPT") && name == "evalsha" {
			p.apart = p.apart || slots
			refused = append(refused, group...)
			continue
		}
		group.finish(reply, err)
	}
	return refused
}

func (c *Call) finish(reply any, err error) {
	c.reply, c.err = reply, err
	close(c.done)
}
