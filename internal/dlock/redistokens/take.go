package redistokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// taken is what one request for tokens has brought.
type taken struct {
	holder *holder
	sent   time.Time
	tokens []string
	fences []string // of the needs that are served, in order; "invalid" for one that never can be
	made   string   // how many tokens there are
	due    []string // holders that have expired
}

// order is what to ask for.
type order struct {
	wait   bool // the holder is going to wait if this is not enough
	spares *spares
	needs  []int
}

// spares are tokens set aside for waiting callers: for one that needs more, or because the caller that fetched them
// gave up.
type spares struct {
	holder *holder
	tokens []string
	turn   bool // holder has the turn to collect tokens one by one
}

// all returns the spare tokens, and the turn as one of them.
func (s *spares) all() []string {
	if s == nil {
		return nil
	}
	if s.turn {
		return append([]string{"turn"}, s.tokens...)
	}
	return s.tokens
}

// take asks for tokens, once, and again when it has found holders that had expired, or has to use a new one.
func (t *Tokens) take(ctx context.Context, key string, o order) (*taken, error) {
	t.note(ctx, key)
	for again := 0; ; again++ {
		epoch := t.epochs.Of(key) // before use: a holder of an older epoch is retired before a newer one is noted
		h, known := t.use(key)
		if o.spares != nil && o.spares.holder != h {
			t.discard(ctx, key, o.spares)
			o.spares.holder = h
		}
		got, err := t.ask(ctx, key, h, epoch, known, o)
		switch {
		case err != nil:
			return nil, err
		case got == nil && again < 3: // the holder is not used any more
			continue
		case got == nil:
			return nil, fmt.Errorf("redistokens: acquire %q: the client was taken for dead, or its tokens were lost, four times", key)
		}
		if len(got.due) == 0 {
			return got, nil
		}
		back, err := t.reap(ctx, key, false, got.due...)
		if err != nil || back == 0 || again >= 3 || len(got.fences)+len(got.tokens) > 0 {
			return got, nil //nolint:nilerr // Others reap too.
		}
	}
}

// ask makes one request. It returns neither a reply nor an error if h is retired, because it has expired, has lost
// tokens, or has some that are not known.
func (t *Tokens) ask(ctx context.Context, key string, h *holder, epoch string, known int, o order) (*taken, error) {
	args := []any{t.ttl.Milliseconds(), t.permits, h.name, epoch, redisx.Flag(o.wait), known}
	spares := o.spares.all()
	args = append(args, len(spares))
	for _, token := range spares {
		args = append(args, token)
	}
	for _, n := range o.needs {
		args = append(args, n)
	}
	answer, sent, err := t.calls.Run(ctx, takeScript, t.keys(key, h.name), args...)
	if err != nil {
		t.landed(h)
		return nil, t.unanswered(ctx, key, h, err)
	}
	reply, _ := answer.([]any)
	retired := len(reply) < 5
	if retired {
		t.landed(h)
		t.retire(ctx, key, h)
	}
	if len(reply) > 0 {
		t.epochs.Set(key, fmt.Sprint(reply[0]))
	}
	if retired {
		return nil, nil //nolint:nilnil // That is the third answer.
	}
	got := &taken{
		holder: h, sent: sent,
		made: fmt.Sprint(reply[1]), due: redisx.Strings(reply[2]), tokens: redisx.Strings(reply[3]), fences: redisx.Strings(reply[4]),
	}
	t.landed(h, got.tokens...)
	return got, nil
}

// unanswered says what to make of a request that failed.
func (t *Tokens) unanswered(ctx context.Context, key string, h *holder, err error) error {
	if redisx.Refused(err) || errors.Is(err, redisx.ErrUnsent) {
		return fmt.Errorf("redistokens: acquire %q: %w", key, driver.InTime(ctx, err))
	}
	t.retire(ctx, key, h)
	return fmt.Errorf("redistokens: acquire %q: %w: %w", key, dlock.ErrUncertain, driver.InTime(ctx, err))
}

// direct makes one attempt, which passes no caller of this process that waits.
func (t *Tokens) direct(ctx context.Context, key string, n int, wait bool) (*dlock.Lease, error) {
	t.mu.Lock()
	behind := len(t.tap(key).queue) > 0
	t.mu.Unlock()
	if behind {
		return nil, nil //nolint:nilnil // Neither is what the caller asks about.
	}
	got, err := t.take(ctx, key, order{wait: wait, needs: []int{n}})
	switch {
	case err != nil:
		return nil, err
	case len(got.fences) == 0:
		return nil, nil //nolint:nilnil // As above.
	case got.fences[0] == "invalid":
		return nil, invalidTokens(key, n, got.made)
	}
	return t.lease(ctx, key, got, got.fences[0], got.tokens), nil
}

func invalidTokens(key string, n int, made string) error {
	return fmt.Errorf("redistokens: %q: %d of %s: %w", key, n, made, dlock.ErrInvalidPermits)
}
