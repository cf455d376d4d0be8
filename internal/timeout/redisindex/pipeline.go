package redisindex

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"example.com/shop/internal/timeout"
)

// laneKey names a lane.
type laneKey struct {
	shard   timeout.Shard
	missing bool
}

// lane lets concurrent callers share scripts for one shard. While one script is on its way, the next entries are
// collected. So a lone caller does not wait, and many callers cost few round trips. Scripts follow one another. It has
// one goroutine while there are calls.
type lane struct {
	index   *Index
	shard   timeout.Shard
	keys    keySet
	missing bool

	mu      sync.Mutex
	queue   []*call
	running bool
}

// call is what one caller wants to schedule.
type call struct {
	ctx   context.Context //nolint:containedctx // Of the caller, who waits for the call.
	shard timeout.Shard
	pairs []any // moment in ms and id, at most maxBatch times
	added int   // how many ids were new
	err   error
	done  chan struct{} // closed when the fields above are set
}

func (x *Index) lane(s timeout.Shard, missing bool) *lane {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := laneKey{s, missing}
	l := x.lanes[key]
	if l == nil {
		l = &lane{index: x, shard: s, keys: x.keysOf(s), missing: missing}
		x.lanes[key] = l
	}
	return l
}

// start adds a call to the next script.
func (l *lane) start(ctx context.Context, pairs []any) *call {
	c := &call{ctx: ctx, shard: l.shard, pairs: pairs, done: make(chan struct{})}
	l.mu.Lock()
	l.queue = append(l.queue, c)
	idle := !l.running
	l.running = true
	l.mu.Unlock()
	if idle {
		go l.flush(context.WithoutCancel(ctx))
	}
	return c
}

// wait returns when the hints have arrived, or with the cause of the end of the
// caller's context; then they may still arrive.
func (c *call) wait() (int, error) {
	select {
	case <-c.done:
		return c.added, c.err
	case <-c.ctx.Done():
		return 0, context.Cause(c.ctx)
	}
}

// flush sends scripts until there are no more calls.
func (l *lane) flush(ctx context.Context) {
	for {
		runtime.Gosched() // callers that are ready now come along, and nobody waits for others
		batch := l.take()
		if len(batch) == 0 {
			return
		}
		l.send(ctx, batch)
	}
}

// take returns the calls for the next script. If there are none, the goroutine ends.
func (l *lane) take() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, values := 0, 0
	for n < len(l.queue) {
		if values += len(l.queue[n].pairs); values > 2*maxBatch {
			break
		}
		n++
	}
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	if len(l.queue) == 0 {
		l.queue = nil
	}
	l.running = n > 0
	return batch
}

func (l *lane) send(ctx context.Context, batch []*call) {
	args := append(l.index.announce(l.keys), flag(l.missing))
	live := batch[:0]
	for _, c := range batch {
		if c.ctx.Err() != nil { // nobody waits for it any more
			c.finish(0, context.Cause(c.ctx))
			continue
		}
		args, live = append(append(args, len(c.pairs)), c.pairs...), append(live, c)
	}
	if len(live) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.index.cfg.Timeout)
	defer cancel()
	reply, err := scheduleScript.Run(ctx, l.index.rdb, []string{l.keys.pending}, args)
	list, _ := reply.([]any)
	if err == nil && len(list) != 1+len(live) {
		err = fmt.Errorf("reply %v", reply)
	}
	for i, c := range live {
		added := int64(0)
		if err == nil {
			added, _ = list[1+i].(int64)
		}
		c.finish(int(added), err)
	}
	if err == nil {
		l.index.deliver(l.keys.name, list[0])
	}
}

func flag(missing bool) string {
	if missing {
		return "nx"
	}
	return ""
}

func (c *call) finish(added int, err error) {
	c.added, c.err = added, err
	close(c.done)
}
