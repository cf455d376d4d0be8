package redlock

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// acquisition is one attempt to take a key, on all servers at once. It continues in the background after it has been
// decided. A late vote is added to the grant if the acquisition has won and its lease is valid. Otherwise the vote is
// released.
type acquisition struct {
	l       *Locker
	key, id string
	chosen  chan struct{} // closed when token is set

	mu      sync.Mutex
	votes   []vote
	token   uint64 // the greatest of a majority
	over    bool   // nobody wants the key, or wants it any more
	changed chan struct{}
}

// vote is what a server has said.
type vote struct {
	state state
	token uint64        // that it proposes, with granted
	left  time.Duration // how long another owner has the key, with denied
	err   error         // with unsent and unknown
}

// state is how far a server has got with an acquisition.
type state int

// The states. All but pending and granted are final.
const (
	pending state = iota // it has not answered
	granted              // it has granted, and may not know the token
	acked                // and has the token of the acquisition as its last one
	denied               // another owner has its lock
	unsent               // it was not asked
	unknown              // it may have granted
)

const states = 6

// hold starts an acquisition. The end of ctx keeps it from servers that it has not been sent to,
// and nothing else.
func (l *Locker) hold(ctx context.Context, key string) *acquisition {
	b := &acquisition{
		l: l, key: key, id: l.newID(), chosen: make(chan struct{}),
		votes: make([]vote, len(l.nodes)), changed: make(chan struct{}),
	}
	for i := range l.nodes {
		l.background.Go(math.MaxInt, func() { b.poll(ctx, i) })
	}
	return b
}

// poll asks one server, and sends it the token that the majority has.
func (b *acquisition) poll(ctx context.Context, i int) {
	v := b.take(ctx, b.l.nodes[i])
	b.set(ctx, i, v)
	if v.state != granted {
		return
	}
	<-b.chosen
	b.mu.Lock()
	token, over := b.token, b.over
	b.mu.Unlock()
	switch {
	case over:
		return
	case v.token == token:
		v.state = acked
	default:
		v = b.raise(ctx, b.l.nodes[i], token)
	}
	b.set(ctx, i, v)
}

// take asks a server for its vote.
func (b *acquisition) take(ctx context.Context, n *node) vote {
	l := b.l
	reply, err := n.call(ctx, takeScript, []string{l.lockKey(b.key), l.fenceKey(b.key), l.knownKey(), l.settlingKey()},
		b.id, l.cfg.TTL.Milliseconds(), l.fenceTTL(), l.cfg.Settle.Milliseconds())
	switch r := reply.(type) {
	case int64:
		return vote{state: denied, left: time.Duration(r) * time.Millisecond}
	case string:
		token, bad := strconv.ParseUint(r, 10, 64)
		if err = bad; err == nil {
			return vote{state: granted, token: token}
		}
	}
	if errors.Is(err, errUnsent) {
		return vote{state: unsent, err: err}
	}
	return vote{state: unknown, err: err}
}

// raise makes the token of the majority the last one of a server.
func (b *acquisition) raise(ctx context.Context, n *node, token uint64) vote {
	l := b.l
	reply, err := n.call(ctx, raiseScript, []string{l.lockKey(b.key), l.fenceKey(b.key)}, b.id, token, l.fenceTTL())
	switch {
	case err != nil:
		return vote{state: unknown, err: err}
	case reply != int64(1):
		return vote{state: denied} // the server has lost its data
	}
	return vote{state: acked, token: token}
}

// set records a vote. A vote that is granted after the attempt has ended is released.
func (b *acquisition) set(ctx context.Context, i int, v vote) {
	b.mu.Lock()
	late := b.over && b.votes[i].state == pending
	b.votes[i] = v
	close(b.changed)
	b.changed = make(chan struct{})
	b.mu.Unlock()
	switch {
	case !late:
	case v.state == granted:
		_, _ = b.free(ctx, i) // or the Rollback does
	case v.state == unknown:
		b.l.nodes[i].rollback.Add(ctx, b.held())
	}
}

func (b *acquisition) held() dlock.Held {
	return dlock.Held{Key: b.key, Fence: dlock.Fence{Token: b.token, Owner: b.id}}
}

// free releases what one server has granted, if not now then later.
func (b *acquisition) free(ctx context.Context, i int) (verdict int64, err error) {
	keys, args := b.l.pairs([]dlock.Held{b.held()})
	verdicts, err := b.l.nodes[i].verdicts(ctx, releaseScript, 1, keys, args)
	if err != nil {
		b.l.nodes[i].rollback.Add(ctx, b.held())
		return 0, err
	}
	return verdicts[0], nil
}

// decide waits until the acquisition is won or lost, or ctx ends, and returns the votes. It is
// won if a majority has granted the key, and has the token as its last one.
func (b *acquisition) decide(ctx context.Context) (won bool, votes []vote) {
	for {
		b.mu.Lock()
		c := count(b.votes)
		if b.token == 0 && c[granted] >= b.l.quorum {
			for _, v := range b.votes {
				b.token = max(b.token, v.token)
			}
			close(b.chosen)
		}
		votes, changed := slices.Clone(b.votes), b.changed
		b.mu.Unlock()
		switch {
		case c[acked] >= b.l.quorum:
			return true, votes
		case c[pending]+c[granted]+c[acked] < b.l.quorum, ctx.Err() != nil:
			return false, votes
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func count(votes []vote) (c [states]int) {
	for _, v := range votes {
		c[v.state]++
	}
	return c
}

// end releases the key on every server that has granted it, or may have, all at once.
// The channel gets what each says; its capacity is enough for all. A server that has not
// voted yet is not asked: its vote is released when it comes. The end of ctx leaves those
// that are silent to the Rollback.
func (b *acquisition) end(ctx context.Context) (asked int, answers <-chan answer[int64], votes []vote) {
	b.mu.Lock()
	b.over = true
	if b.token == 0 {
		close(b.chosen)
	}
	votes = slices.Clone(b.votes)
	b.mu.Unlock()
	said := make(chan answer[int64], len(votes))
	for i, v := range votes {
		switch v.state {
		case granted, acked, unknown:
			asked++
			b.l.background.Go(math.MaxInt, func() {
				verdict, err := b.free(ctx, i)
				if v.state == unknown && err == nil && verdict != driver.Done {
					b.l.nodes[i].rollback.Add(ctx, b.held()) // the take may be on its way yet
				}
				said <- answer[int64]{verdict, err}
			})
		default:
		}
	}
	return asked, said, votes
}

// lose ends an acquisition whose lease is lost. A server may have granted the key, or has granted it and may not know the
// token: that is released in the background, as is a vote that comes later.
func (b *acquisition) lose(ctx context.Context) {
	b.mu.Lock()
	b.over = true
	votes := slices.Clone(b.votes)
	b.mu.Unlock()
	for i, v := range votes {
		if v.state == granted || v.state == unknown {
			b.l.nodes[i].rollback.Add(ctx, b.held())
		}
	}
}

// answer is what a server says.
type answer[T any] struct {
	value T
	err   error
}

// ask has f ask each server, all at once. Nobody has to receive the answers.
func ask[T any](l *Locker, f func(n *node) (T, error)) <-chan answer[T] {
	answers := make(chan answer[T], len(l.nodes))
	for _, n := range l.nodes {
		l.background.Go(math.MaxInt, func() {
			value, err := f(n)
			answers <- answer[T]{value, err}
		})
	}
	return answers
}
