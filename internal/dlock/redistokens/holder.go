package redistokens

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/redisx"
)

// maxTaps bounds the keys that a client remembers and does not use.
const maxTaps = 4096

var errInFlight = errors.New("redistokens: requests are in flight")

// tap is what a client knows of one key.
type tap struct {
	holder *holder
	queue  []*request // callers that wait, in order
	served bool       // a fetcher runs
	noted  time.Time  // when Redis was notified that this process uses the key
}

// holder is a client as Redis knows it: the owner of a list of tokens. The list is the truth about what the client
// holds: a token whose arrival it never noticed is in there, too. The holder is retired if an outcome is unknown, or if
// the client may have been declared dead or has lost tokens. A retired holder takes no more tokens, keeps the leases that it has, and
// returns the other tokens of its list.
type holder struct {
	name   string
	flying int               // requests in flight that may add to the list
	uses   int               // requests so far
	known  map[string]int    // tokens of leases, and those set aside for callers that wait
	latest map[string]uint64 // by token: the fencing token of its latest lease
}

// use returns the holder that takes for key, and counts a request of it. known
// is how many tokens the client knows in its list, or -1 while others may be on
// their way there.
func (t *Tokens) use(key string) (h *holder, known int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.tap(key)
	if p.holder == nil {
		t.holders++
		p.holder = &holder{name: t.name + ":" + t.client + "-" + strconv.Itoa(t.holders), known: map[string]int{}, latest: map[string]uint64{}}
	}
	h = p.holder
	h.flying++
	h.uses++
	if h.flying > 1 {
		return h, -1
	}
	for _, n := range h.known {
		known += n
	}
	return h, known
}

// landed ends what use began, and notes the tokens that have come.
func (t *Tokens) landed(h *holder, tokens ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.flying--
	for _, token := range tokens {
		h.known[token]++
	}
	t.forgetRetired(h)
}

// drop forgets tokens that are no longer held, or are to go back.
func (t *Tokens) drop(h *holder, tokens ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range tokens {
		if h.known[token]--; h.known[token] <= 0 {
			delete(h.known, token)
			delete(h.latest, token)
		}
	}
	t.forgetRetired(h)
}

// retire releases in the background the tokens in the list of h that the client does not know. It waits for requests
// in flight, and no later request takes tokens for h. So no token can reach the list afterwards.
func (t *Tokens) retire(ctx context.Context, key string, h *holder) {
	t.mu.Lock()
	if p := t.taps[key]; p != nil && p.holder == h {
		p.holder = nil
	}
	t.retired[h.name] = h
	t.forgetRetired(h)
	t.mu.Unlock()
	t.rollback.Add(ctx, dlock.Held{Key: key, Fence: dlock.Fence{Owner: h.name}})
}

// leased notes the latest lease of tokens.
func (t *Tokens) leased(h *holder, fence uint64, tokens []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range tokens {
		h.latest[token] = fence
	}
}

// superseded reports whether h has a later lease of one of tokens. Then the lease of fence was lost in a failover: the new master
// did not know of it, and has granted the token once more.
func (t *Tokens) superseded(h *holder, fence uint64, tokens []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(tokens, func(token string) bool { return h.latest[token] != fence })
}

// holderOf returns the holder of a list, or nil if there is none any more.
func (t *Tokens) holderOf(l list) *holder {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.taps[l.key]; p != nil && p.holder != nil && p.holder.name == l.holder {
		return p.holder
	}
	return t.retired[l.holder]
}

// forgetRetired forgets a retired holder that has no known token and no request in flight. It requires mu.
func (t *Tokens) forgetRetired(h *holder) {
	if h.flying == 0 && len(h.known) == 0 {
		delete(t.retired, h.name)
	}
}

func (t *Tokens) revert(ctx context.Context, held []dlock.Held) (found []bool, err error) {
	calls := make([]*redisx.Call, len(held))
	for i, h := range held {
		if args, ok := t.knownTo(h.Fence.Owner); ok {
			calls[i] = t.calls.Start(ctx, reconcileScript, t.keys(h.Key, h.Fence.Owner), args...)
		}
	}
	found = make([]bool, len(held))
	for i, c := range calls {
		if c == nil {
			err = errInFlight
			continue
		}
		n, _, failed := c.Wait()
		if failed != nil {
			err = failed
		}
		found[i] = failed == nil && n != int64(0)
	}
	return found, err
}

// knownTo returns the arguments that describe what a retired holder has. It is not ok while requests of it are in
// flight.
func (t *Tokens) knownTo(name string) (args []any, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	args = []any{t.ttl.Milliseconds()}
	h := t.retired[name]
	if h == nil {
		return args, true
	}
	for token := range h.known {
		args = append(args, token)
	}
	return args, h.flying == 0
}

// tap is called under mu.
func (t *Tokens) tap(key string) *tap {
	p := t.taps[key]
	if p == nil {
		if len(t.taps) >= maxTaps {
			t.forget()
		}
		p = &tap{}
		t.taps[key] = p
	}
	return p
}

// forget drops keys that are not in use. It is called under mu.
func (t *Tokens) forget() {
	for key, p := range t.taps {
		idle := p.holder == nil || p.holder.flying == 0 && len(p.holder.known) == 0
		if idle && !p.served && len(p.queue) == 0 {
			delete(t.taps, key)
		}
	}
}
