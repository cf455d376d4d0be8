package redistokens

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/redisx"
)

// lease turns tokens of a holder into what the caller gets.
func (t *Tokens) lease(ctx context.Context, key string, got *taken, fence string, tokens []string) *dlock.Lease {
	h := got.holder
	number, _ := strconv.ParseUint(fence, 10, 64) // made by digits in the script
	t.leased(h, number, tokens)
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: dlock.Fence{Token: number, Owner: rand.Text()}, Kind: h.name + " " + strings.Join(tokens, " "),
		Sent: got.sent, TTL: t.ttl, MaxHold: t.maxHold, Renewer: t.renewer,
		Release: func(ctx context.Context) error {
			if t.superseded(h, number, tokens) {
				return dlock.ErrLost
			}
			n, err := t.release(ctx, key, h, tokens)
			if err == nil && n < len(tokens) {
				return dlock.ErrLost
			}
			return err
		},
		Ended: func(outcome error) {
			t.drop(h, tokens...)
			if !errors.Is(outcome, dlock.ErrReleased) { // the list may have the tokens still
				t.retire(ctx, key, h)
			}
		},
	})
}

// release releases tokens that h has, and returns how many those were.
func (t *Tokens) release(ctx context.Context, key string, h *holder, tokens []string) (int, error) {
	args := []any{t.ttl.Milliseconds(), h.name}
	for _, token := range tokens {
		args = append(args, token)
	}
	n, _, err := t.calls.Run(ctx, releaseScript, t.keys(key, h.name), args...)
	back, _ := n.(int64)
	return int(back), err
}

// list is what holders are renewed by, with all of their tokens at once.
type list struct{ key, holder string }

// renew is what the Renewer calls: one script for each list, all of them in one
// round trip.
func (t *Tokens) renew(ctx context.Context, held []dlock.Held) []error {
	lists := map[list][]int{}
	for i, g := range held {
		name, _, _ := strings.Cut(g.Kind, " ")
		l := list{g.Key, name}
		lists[l] = append(lists[l], i)
	}
	errs := make([]error, len(held))
	calls := make(map[list]*redisx.Call, len(lists))
	uses := make(map[list]int, len(lists))
	for l := range lists {
		uses[l] = t.uses(l)
		calls[l] = t.renewals.Start(ctx, renewScript, t.keys(l.key, l.holder), t.ttl.Milliseconds(), l.holder)
	}
	for l, c := range calls {
		reply, _, err := c.Wait()
		tokens := redisx.Strings(reply)
		if err == nil {
			t.reconcile(ctx, l, uses[l], tokens)
		}
		h := t.holderOf(l)
		for _, i := range lists[l] {
			_, kind, _ := strings.Cut(held[i].Kind, " ")
			mine := strings.Split(kind, " ")
			switch {
			case err != nil:
				errs[i] = err
			case !contains(tokens, mine), h != nil && t.superseded(h, held[i].Fence.Token, mine):
				errs[i] = dlock.ErrLost
			}
		}
	}
	return errs
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// uses counts the requests of a holder, or returns -1 while some are in flight.
func (t *Tokens) uses(l list) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.taps[l.key]; p != nil && p.holder != nil && p.holder.name == l.holder && p.holder.flying == 0 {
		return p.holder.uses
	}
	return -1
}

// reconcile retires a holder whose list has tokens that the client does not know, although no request was in flight
// when Redis answered. A request that was given up has moved them.
func (t *Tokens) reconcile(ctx context.Context, l list, before int, tokens []string) {
	if before < 0 || t.uses(l) != before {
		return
	}
	t.mu.Lock()
	h := t.taps[l.key].holder
	strange := h != nil && slices.ContainsFunc(tokens, func(token string) bool { return h.known[token] == 0 })
	t.mu.Unlock()
	if strange {
		t.retire(context.WithoutCancel(ctx), l.key, h)
	}
}
