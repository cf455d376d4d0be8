package redisindex

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/shop/internal/timeout"
)

// Claim implements [timeout.Index]. One claim lends 512 timers at most.
func (x *Index) Claim(ctx context.Context, s timeout.Shard, limit int, lease time.Duration) (timeout.Claim, error) {
	k := x.keysOf(s)
	reply, err := x.run(ctx, claimScript, []string{k.pending, k.leased, k.fence, k.complete},
		[]any{max(0, min(limit, maxBatch)), lease.Milliseconds(), x.cfg.Shards})
	if err != nil {
		return timeout.Claim{}, x.named("claim", s, err)
	}
	c, err := readClaim(reply)
	return c, x.named("claim", s, err)
}

func readClaim(reply any) (c timeout.Claim, err error) {
	list, _ := reply.([]any)
	if len(list) < 3 {
		return c, fmt.Errorf("reply %v", reply)
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i], _ = v.(string)
	}
	if c.Now, err = readTime(texts[0]); err != nil {
		return c, err
	}
	if texts[1] != "" {
		if c.Next, err = readTime(texts[1]); err != nil {
			return c, err
		}
	}
	c.Wiped = texts[2] == "wiped"
	if len(texts) > 3 {
		c.Timers = make([]timeout.Claimed, len(texts)-3)
	}
	for i, member := range texts[3:] {
		if c.Timers[i], err = readMember(member); err != nil {
			return timeout.Claim{}, err
		}
	}
	return c, nil
}

func readTime(text string) (time.Time, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err
}

// readMember is the reverse of member. The id comes last: it may contain bars.
func readMember(text string) (timeout.Claimed, error) {
	token, rest, _ := strings.Cut(text, "|")
	attempt, rest, _ := strings.Cut(rest, "|")
	due, id, ok := strings.Cut(rest, "|")
	if !ok {
		return timeout.Claimed{}, fmt.Errorf("member %q", text)
	}
	t, tokenErr := strconv.ParseUint(token, 10, 64)
	a, attemptErr := strconv.Atoi(attempt)
	d, dueErr := readTime(due)
	return timeout.Claimed{ID: id, Due: d, Token: t, Attempt: a}, errors.Join(tokenErr, attemptErr, dueErr)
}

// member is what stands for a claim in Redis.
func member(c timeout.Claimed) string {
	b := make([]byte, 0, 40+len(c.ID))
	b = append(strconv.AppendUint(b, c.Token, 10), '|')
	b = append(strconv.AppendInt(b, int64(c.Attempt), 10), '|')
	b = append(strconv.AppendInt(b, c.Due.UnixMilli(), 10), '|')
	return string(append(b, c.ID...))
}

// Ack implements [timeout.Index].
func (x *Index) Ack(ctx context.Context, s timeout.Shard, claimed []timeout.Claimed) (int, error) {
	members := make([]any, len(claimed))
	for i, c := range claimed {
		members[i] = member(c)
	}
	n, err := x.count(ctx, removals(ctx, x.keysOf(s).leased, members))
	return n, x.named("ack", s, err)
}

// Return implements [timeout.Index].
func (x *Index) Return(ctx context.Context, s timeout.Shard, claimed []timeout.Claimed, due []time.Time) (int, error) {
	if len(claimed) != len(due) {
		return 0, fmt.Errorf("redisindex: return of %d claims to %d moments", len(claimed), len(due))
	}
	k, sum := x.keysOf(s), 0
	for i := 0; i < len(claimed); i += maxBatch {
		args := x.announce(k)
		for j := i; j < min(i+maxBatch, len(claimed)); j++ {
			args = append(args, member(claimed[j]), due[j].UnixMilli(), claimed[j].ID)
		}
		reply, err := x.run(ctx, returnScript, []string{k.pending, k.leased}, args)
		if err != nil {
			return sum, x.named("return", s, err)
		}
		list, _ := reply.([]any)
		if len(list) != 2 {
			return sum, x.named("return", s, fmt.Errorf("reply %v", reply))
		}
		n, _ := list[0].(int64)
		sum += int(n)
		x.deliver(k.name, list[1])
	}
	return sum, nil
}

// Extend implements [timeout.Index]. It never ends a lease sooner than it would have ended.
func (x *Index) Extend(ctx context.Context, s timeout.Shard, claimed []timeout.Claimed, lease time.Duration) (int, error) {
	sum := 0
	for len(claimed) > 0 {
		n := min(len(claimed), maxBatch)
		args := append(make([]any, 0, 1+n), lease.Milliseconds())
		for _, c := range claimed[:n] {
			args = append(args, member(c))
		}
		claimed = claimed[n:]
		reply, err := x.run(ctx, extendScript, []string{x.keysOf(s).leased}, args)
		if err != nil {
			return sum, x.named("extend", s, err)
		}
		live, _ := reply.(int64)
		sum += int(live)
	}
	return sum, nil
}
