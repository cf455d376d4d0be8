package redisx

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnsent is for a call whose caller left before it was sent: it had no effect.
var ErrUnsent = errors.New("redisx: not sent")

// Caller makes calls of scripts. A lone caller sends its call itself: another goroutine for it costs a third of its
// rate. Concurrent callers share round trips. With them, 32 goroutines with a key each have twice the rate that they have
// with a round trip per call. A Caller has a pipeline for each master of a cluster, so that calls for one master do not
// wait for another. Without a cluster it has one.
//
// A caller returns when its context ends. Then a call that was sent has an unknown outcome. If the connections of the client
// are not [Interruptible], a lone caller that is cancelled waits for the reply, at most until its deadline.
type Caller struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // nil unless rdb is one
	timeout time.Duration

	mu        sync.Mutex
	pipelines map[string]*pipeline // by node; one without a cluster
}

// NewCaller returns a Caller on rdb. timeout bounds each round trip.
func NewCaller(rdb redis.UniversalClient, timeout time.Duration) *Caller {
	c := &Caller{rdb: rdb, timeout: timeout, pipelines: map[string]*pipeline{}}
	c.cluster, _ = rdb.(*redis.ClusterClient)
	return c
}

// Run makes one call. The reply is nil with an error. The time is when the call
// was sent, or a little before. It returns when ctx ends, even while the call is
// under way: then its outcome is unknown, unless the error is [ErrUnsent]. The cause of ctx is not in the error: it may
// look like an answer of Redis, and callers classify the error. They add the cause when they have done so.
func (c *Caller) Run(ctx context.Context, s Script, keys []string, args ...any) (any, time.Time, error) {
	r := c.pipeline(ctx, keys[0]).run(&call{script: s, Request: Request{keys, args}, ctx: ctx})
	return r.Value, r.Sent, r.Err
}

// Request is one of several calls of a script.
type Request struct {
	Keys []string
	Args []any
}

// Reply is what Run returns.
type Reply struct {
	Value any
	Sent  time.Time
	Err   error
}

// RunAll makes several calls as Run does, in one round trip, in a cluster in one to each master concurrently. They wait
// for no other call, unless there is only one.
func (c *Caller) RunAll(ctx context.Context, s Script, requests []Request) []Reply {
	calls, replies := make([]*call, len(requests)), make([]Reply, len(requests))
	for i, r := range requests {
		calls[i] = &call{script: s, Request: r, ctx: ctx}
	}
	if len(calls) == 1 {
		replies[0] = c.pipeline(ctx, calls[0].Keys[0]).run(calls[0])
		return replies
	}
	c.alone(ctx, calls...)
	for i, each := range calls {
		replies[i] = each.Reply
	}
	return replies
}

// alone makes calls of one caller, in one round trip.
func (c *Caller) alone(ctx context.Context, calls ...*call) {
	sent, err := time.Now(), ctx.Err()
	if err == nil {
		timed, done := leaving(ctx, sent.Add(c.timeout))
		defer done()
		if len(calls) == 1 || c.cluster != nil || !many(timed, c.rdb, calls) {
			send(timed, c.rdb, calls)
		}
	}
	for _, each := range calls {
		switch each.Sent = sent; {
		case err != nil:
			each.Reply = Reply{Err: unsent(ctx)}
		case each.Err != nil && ctx.Err() != nil && Uncertain(each.Err):
			each.Err = ctx.Err()
		}
	}
}

func unsent(ctx context.Context) error { return errors.Join(ErrUnsent, ctx.Err()) }

// pipeline returns that of the master of key.
func (c *Caller) pipeline(ctx context.Context, key string) *pipeline {
	node := ""
	if c.cluster != nil {
		if master, err := c.cluster.MasterForKey(ctx, key); err == nil {
			node = master.Options().Addr
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pipelines[node]
	if p == nil {
		p = &pipeline{caller: c}
		c.pipelines[node] = p
	}
	return p
}
