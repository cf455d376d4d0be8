package redistokens

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/redisx"
)

// request is a caller that waits for n tokens.
type request struct {
	ctx  context.Context //nolint:containedctx // The values of the lease.
	n    int
	done chan handed // buffered: the fetcher never waits
}

type handed struct {
	lease *dlock.Lease
	err   error
}

// wait queues behind the callers of this process, for whom one goroutine fetches.
func (t *Tokens) wait(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	r := &request{ctx: ctx, n: n, done: make(chan handed, 1)}
	t.mu.Lock()
	p := t.tap(key)
	p.queue = append(p.queue, r)
	if !p.served {
		p.served = true
		t.fetchers.Go(func() { t.fetch(context.WithoutCancel(ctx), key) })
	}
	t.mu.Unlock()
	select {
	case a := <-r.done:
		return a.lease, a.err
	case <-ctx.Done():
	}
	if t.leave(key, r) {
		return nil, dlock.Ended(ctx)
	}
	if a := <-r.done; a.lease != nil { // came at the same moment
		a.lease.Release(ctx) //nolint:errcheck // A failed release is retried in the background.
	}
	return nil, dlock.Ended(ctx)
}

// leave takes r out of the queue, and reports whether it was there.
func (t *Tokens) leave(key string, r *request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.tap(key)
	before := len(p.queue)
	p.queue = slices.DeleteFunc(p.queue, func(other *request) bool { return other == r })
	return len(p.queue) < before
}

// waiting returns the first callers that wait. If there are none, the fetcher ends.
func (t *Tokens) waiting(key string, end bool) []*request {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.tap(key)
	if len(p.queue) == 0 && end {
		p.served = false
	}
	return slices.Clone(p.queue[:min(16, len(p.queue))])
}

// fetch serves the callers that wait for key, in order, until there are none. It has one request in flight, so
// callers need no connection each. It does not poll: a request waits on the server until a token comes, for a second
// at most, and then asks for expired holders.
func (t *Tokens) fetch(ctx context.Context, key string) {
	s := &spares{}
	for {
		waiting := t.waiting(key, false)
		if len(waiting) == 0 {
			t.putBack(ctx, key, s, true)
			if len(t.waiting(key, true)) == 0 {
				return
			}
			continue
		}
		needs := make([]int, len(waiting))
		for i, r := range waiting {
			needs[i] = r.n
		}
		got, err := t.take(ctx, key, order{wait: true, spares: s, needs: needs})
		switch {
		case err != nil:
			t.fail(key, err)
		case t.serve(key, got, s, waiting):
			t.putBack(ctx, key, s, false) // the turn, if it was needed
		default:
			if err := t.blockFor(ctx, key, s, needs[0]); err != nil {
				t.fail(key, err)
			}
		}
	}
}

// serve gives every caller its tokens that got has a fencing token for. It reports
// whether there was any.
func (t *Tokens) serve(key string, got *taken, s *spares, waiting []*request) bool {
	s.tokens = append(s.tokens, got.tokens...)
	for i, fence := range got.fences {
		r := waiting[i]
		if fence == "invalid" {
			if t.leave(key, r) {
				r.done <- handed{err: invalidTokens(key, r.n, got.made)}
			}
			continue
		}
		if !t.leave(key, r) {
			continue // it has given up: its tokens are for the next
		}
		tokens := slices.Clone(s.tokens[:r.n])
		s.tokens = slices.Delete(s.tokens, 0, r.n)
		r.done <- handed{lease: t.lease(r.ctx, key, got, fence, tokens)}
	}
	return len(got.fences) > 0
}

// fail answers all callers that wait.
func (t *Tokens) fail(key string, err error) {
	t.mu.Lock()
	p := t.tap(key)
	waiting := p.queue
	p.queue = nil
	t.mu.Unlock()
	for _, r := range waiting {
		r.done <- handed{err: err}
	}
}

// blockFor waits on the server for one token more. A waiter for several tokens first waits for the turn, and holds none
// meanwhile. So one client at a time collects tokens one by one, and no two can wait for each other's.
func (t *Tokens) blockFor(ctx context.Context, key string, s *spares, n int) error {
	source := 0 // free
	switch {
	case n > 1 && !s.turn:
		t.putBack(ctx, key, s, true)
		source = 2 // turn
	case n == 1 && s.turn:
		t.putBack(ctx, key, s, false)
	}
	h, _ := t.use(key)
	if h != s.holder { // retired since: the new one is not registered yet
		t.landed(h)
		return nil
	}
	request, cancel := context.WithTimeout(ctx, t.block+t.timeout)
	defer cancel()
	seconds := strconv.FormatFloat(t.block.Seconds(), 'f', 3, 64)
	keys := t.keys(key, h.name)
	cmd := redis.NewCmd(request, "blmove", keys[source], keys[6], "left", "right", seconds)
	pipe := t.blocking.Pipeline()
	pipe.Process(request, redisx.Once{Cmd: cmd}) //nolint:errcheck // It only queues.
	pipe.Eval(request, arrivedText, keys, t.ttl.Milliseconds(), h.name)
	pipe.Exec(request) //nolint:errcheck // BLMOVE has the error.
	token, err := cmd.Text()
	switch {
	case errors.Is(err, redis.Nil):
		t.landed(h)
		return nil
	case err != nil:
		t.landed(h)
		return t.unanswered(ctx, key, h, err)
	}
	t.landed(h, token)
	if token == "turn" {
		s.turn = true
	} else {
		s.tokens = append(s.tokens, token)
	}
	return nil
}

// putBack releases the turn, and the spare tokens if all is set.
func (t *Tokens) putBack(ctx context.Context, key string, s *spares, all bool) {
	var tokens []string
	if all {
		tokens, s.tokens = s.tokens, nil
	}
	if s.turn {
		tokens, s.turn = append(tokens, "turn"), false
	}
	if len(tokens) == 0 {
		return
	}
	request, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	_, err := t.release(request, key, s.holder, tokens)
	t.drop(s.holder, tokens...)
	if err != nil {
		t.retire(ctx, key, s.holder)
	}
}

// discard leaves spares of a retired holder to the background.
func (t *Tokens) discard(ctx context.Context, key string, s *spares) {
	tokens := s.all()
	s.tokens, s.turn = nil, false
	if len(tokens) > 0 {
		t.drop(s.holder, tokens...)
		t.retire(ctx, key, s.holder)
	}
}
