package memindex

import (
	"context"
	"time"

	"example.com/shop/internal/timeout"
)

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
