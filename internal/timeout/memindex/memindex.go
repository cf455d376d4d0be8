// Package memindex is the timeout.Index inside one process: the default without
// Redis, and the index of tests. Its time is that of the time package, so that it
// runs in a synctest bubble.
//
// A kind and lane is one shard: a heap of hints by their moment and a heap of claims by the end
// of their lease, so that every operation costs O(log n) per timer. It starts
// empty after each start of the process, which it reports as a loss of data.
package memindex

import (
	"context"
	"sync"
	"time"

	"example.com/shop/internal/timeout"
)

// Config is the configuration of an [Index].
type Config struct {
	// Now is the clock of the index; nil means time.Now. Tests let it be wrong.
	Now func() time.Time
}

// Index keeps hints in memory. It is safe for concurrent use.
type Index struct {
	now func() time.Time

	mu    sync.Mutex
	parts map[timeout.Shard]*part
}

var (
	_ timeout.Index = (*Index)(nil)
	_ timeout.Local = (*Index)(nil)
)

// New returns an empty index.
func New(cfg Config) *Index {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Index{now: cfg.Now, parts: map[timeout.Shard]*part{}}
}

// Local implements [timeout.Local].
func (x *Index) Local() bool { return true }

// Shards implements [timeout.Index].
func (x *Index) Shards(kind, lane string) []timeout.Shard {
	return []timeout.Shard{{Kind: kind, Lane: lane}}
}

// Schedule implements [timeout.Index].
func (x *Index) Schedule(ctx context.Context, kind, lane string, missing bool, hints []timeout.Hint) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Lane: lane})
	defer p.mu.Unlock()
	before := p.head()
	added := 0
	for _, h := range hints {
		if missing && p.claims[h.ID] > 0 {
			continue
		}
		if p.put(h.ID, h.At.UnixMilli(), missing) {
			added++
		}
	}
	p.announce(before)
	return added, nil
}

// Remove implements [timeout.Index].
func (x *Index) Remove(ctx context.Context, kind, lane string, ids []string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Lane: lane})
	defer p.mu.Unlock()
	for _, id := range ids {
		if e, ok := p.pending[id]; ok {
			p.due.remove(e)
			delete(p.pending, id)
		}
	}
	return nil
}

// Claim implements [timeout.Index].
func (x *Index) Claim(ctx context.Context, s timeout.Shard, limit int, lease time.Duration) (timeout.Claim, error) {
	if ctx.Err() != nil {
		return timeout.Claim{}, ctx.Err()
	}
	p := x.part(s)
	defer p.mu.Unlock()
	now := x.now().UnixMilli()
	c := timeout.Claim{Now: time.UnixMilli(now), Wiped: !p.complete}
	for _, e := range p.take(now, now+lease.Milliseconds(), limit) {
		c.Timers = append(c.Timers, timeout.Claimed{
			ID: e.id, Due: time.UnixMilli(e.due), Token: e.token, Attempt: e.attempt,
		})
	}
	if head := p.head(); head != never {
		c.Next = time.UnixMilli(head)
	}
	return c, nil
}

// Ack implements [timeout.Index].
func (x *Index) Ack(ctx context.Context, s timeout.Shard, claimed []timeout.Claimed) (int, error) {
	return x.each(ctx, s, claimed, func(p *part, e *entry, _ int) { p.forget(e) })
}

// Return implements [timeout.Index].
func (x *Index) Return(ctx context.Context, s timeout.Shard, claimed []timeout.Claimed, due []time.Time) (int, error) {
	return x.each(ctx, s, claimed, func(p *part, e *entry, i int) {
		p.forget(e)
		p.put(e.id, due[i].UnixMilli(), true)
	})
}

// Extend implements [timeout.Index].
func (x *Index) Extend(ctx context.Context, s timeout.Shard, claimed []timeout.Claimed, lease time.Duration) (int, error) {
	end := x.now().Add(lease).UnixMilli()
	return x.each(ctx, s, claimed, func(p *part, e *entry, _ int) {
		if end > e.at {
			p.ends.move(e, end)
		}
	})
}

// each calls f for those claims that are still the caller's, and counts them.
func (x *Index) each(ctx context.Context, s timeout.Shard, claimed []timeout.Claimed, f func(p *part, e *entry, i int)) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	p := x.part(s)
	defer p.mu.Unlock()
	before, n := p.head(), 0
	for i, c := range claimed {
		if e, ok := p.lent[lent{c.ID, c.Token}]; ok {
			f(p, e, i)
			n++
		}
	}
	p.announce(before)
	return n, nil
}

// Wake implements [timeout.Index]. Each call returns a channel of its own.
func (x *Index) Wake(s timeout.Shard) <-chan time.Time {
	p := x.part(s)
	defer p.mu.Unlock()
	c := make(chan time.Time, 1)
	p.wakes = append(p.wakes, c)
	return c
}

// Complete implements [timeout.Index].
func (x *Index) Complete(ctx context.Context, kind, lane string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Lane: lane})
	defer p.mu.Unlock()
	p.complete = true
	return nil
}

// Drop implements [timeout.Index].
func (x *Index) Drop(ctx context.Context, kind, lane string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Lane: lane})
	defer p.mu.Unlock()
	p.clear()
	return nil
}

// Stats implements [timeout.Index].
func (x *Index) Stats(ctx context.Context, kind, lane string) (timeout.IndexStats, error) {
	if ctx.Err() != nil {
		return timeout.IndexStats{}, ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Lane: lane})
	defer p.mu.Unlock()
	s := timeout.IndexStats{Pending: len(p.pending), Leased: len(p.lent)}
	if head := p.head(); head != never {
		s.Oldest = time.UnixMilli(head)
	}
	return s, nil
}

// Run implements [timeout.Index]. There is nothing to do.
func (x *Index) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Wipe loses everything, as FLUSHALL does to a server.
func (x *Index) Wipe() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.parts {
		p.mu.Lock()
		p.clear()
		p.mu.Unlock()
	}
}

// part returns a locked part.
func (x *Index) part(s timeout.Shard) *part {
	x.mu.Lock()
	p, ok := x.parts[s]
	if !ok {
		p = &part{token: uint64(x.now().UnixMicro())} // grows over restarts
		p.clear()
		x.parts[s] = p
	}
	x.mu.Unlock()
	p.mu.Lock()
	return p
}
