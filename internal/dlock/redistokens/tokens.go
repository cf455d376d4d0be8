package redistokens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
)

// ErrNoToken means that TryAcquire found no free token.
var ErrNoToken = errors.New("redistokens: no token is free")

const (
	defaultPrefix = "shop:tokens:"
	defaultBlock  = time.Second     // how long one BLPOP waits on the server
	timeout       = 2 * time.Second // of one round trip, apart from the wait
	token         = "token"         // all tokens are alike
)

// Config is the configuration of [Tokens].
type Config struct {
	// Permits is how many tokens a key has. The process that uses a key first makes them, and later processes use those.
	// 0 means 1.
	Permits int

	// Name is the process, and stays the same over a restart. No two living processes have the same name.
	Name string

	// Prefix begins every key in Redis. Empty means "shop:tokens:".
	Prefix string
}

// Tokens is a semaphore for each key. It is safe for concurrent use.
//
// # Data
//
//	shop:tokens:{KEY}        list    one element for each free token
//	shop:tokens:{KEY}:made   string  number of tokens, from the first use
//	shop:tokens:{KEY}:taken  hash    NAME -> how many tokens that process holds
//
// None of them expires. The braces are a hash tag: MULTI takes keys of one slot in a Cluster.
//
// # Operations
//
//	make        WATCH made, then MULTI SET made, RPUSH each token   if a take finds the list empty
//	take        BLPOP, then HINCRBY taken NAME 1                    2 round trips and the wait
//	return      MULTI RPUSH, HINCRBY taken NAME -1                  1 round trip
//	ReleaseAll  WATCH taken, then MULTI RPUSH each, HDEL taken NAME  at the start of a process
//
// BLPOP serves blocked clients in their order. A waiter blocks for a second at a time and then joins the queue again, so the order
// is not that of arrival. Each waiter uses one connection of the pool.
//
// # What is lost
//
//   - A process that crashes and does not restart keeps its tokens. Nothing expires. [TestCrashWithoutRestartKeepsTokens]
//   - A process that crashes between BLPOP and HINCRBY loses a token for good, and so does a lost reply of BLPOP.
//     ReleaseAll cannot know that token. [TestCrashBeforeTheCountLosesAToken, TestLostReplyLosesAToken]
//   - A predecessor that still runs during ReleaseAll keeps working, so more processes work than there are tokens. Each
//     token that it returns afterwards is one too many. [TestReleaseAllOfALivingProcessAddsTokens]
//   - A server that loses its data gets a full list, although processes hold tokens. Each of them returns one too many.
//     [TestLossOfDataAddsTokens]
//   - A holder cannot learn that its token was returned by ReleaseAll, and has no fencing token.
type Tokens struct {
	rdb     redis.UniversalClient
	permits int
	name    string
	prefix  string
	block   time.Duration
}

// New returns Tokens on rdb, which it does not close. It refuses clients that repeat commands: a second BLPOP would take a
// second token.
func New(rdb redis.UniversalClient, cfg Config) (*Tokens, error) {
	t := &Tokens{rdb: rdb, permits: cmp.Or(cfg.Permits, 1), name: cfg.Name, prefix: cmp.Or(cfg.Prefix, defaultPrefix), block: defaultBlock}
	var errs []error
	if t.permits < 1 {
		errs = append(errs, fmt.Errorf("%d permits", cfg.Permits))
	}
	if t.name == "" {
		errs = append(errs, errors.New("the process has no name"))
	}
	if err := errors.Join(append(errs, redisx.Check(rdb))...); err != nil {
		return nil, fmt.Errorf("redistokens: %w", err)
	}
	return t, nil
}

// Permit is one token that this process holds.
type Permit struct {
	t        *Tokens
	key      string
	released bool
}

// Acquire takes a token of key. It waits until one is free. If ctx ends, it returns within a second: a BLPOP that is
// given up earlier can still take a token, which nobody would return.
func (t *Tokens) Acquire(ctx context.Context, key string) (*Permit, error) {
	permit, err := t.TryAcquire(ctx, key)
	for errors.Is(err, ErrNoToken) {
		permit, err = t.take(ctx, key, func(ctx context.Context, list string) error {
			return t.rdb.BLPop(ctx, t.block, list).Err()
		})
	}
	return permit, err
}

// TryAcquire takes a token of key if one is free, otherwise it returns [ErrNoToken]. After any other error a token may be
// lost.
func (t *Tokens) TryAcquire(ctx context.Context, key string) (*Permit, error) {
	pop := func(ctx context.Context, list string) error { return t.rdb.LPop(ctx, list).Err() }
	permit, err := t.take(ctx, key, pop)
	if errors.Is(err, ErrNoToken) { // or the key is new, and take has made its tokens
		return t.take(ctx, key, pop)
	}
	return permit, err
}

// take takes a token with pop, and counts it. If there is none, it makes the tokens of a new key and returns ErrNoToken.
func (t *Tokens) take(ctx context.Context, key string, pop func(ctx context.Context, list string) error) (*Permit, error) {
	if err := errors.Join(redisx.CheckKey(key), ctx.Err()); err != nil {
		return nil, fmt.Errorf("redistokens: acquire %q: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.block+timeout)
	defer cancel()
	free, taken := t.keys(key)
	err := pop(ctx, free)
	switch {
	case errors.Is(err, redis.Nil):
		if err = t.create(ctx, key); err == nil {
			return nil, ErrNoToken
		}
	case err == nil:
		err = t.rdb.HIncrBy(ctx, taken, t.name, 1).Err()
	}
	if err != nil {
		return nil, fmt.Errorf("redistokens: acquire %q: %w", key, err)
	}
	return &Permit{t: t, key: key}, nil
}

// create makes the tokens of key, unless another process has made them.
func (t *Tokens) create(ctx context.Context, key string) error {
	free, _ := t.keys(key)
	err := t.rdb.Watch(ctx, func(tx *redis.Tx) error {
		if n, err := tx.Exists(ctx, free+":made").Result(); err != nil || n > 0 {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, free+":made", t.permits, 0)
			return push(ctx, p, free, t.permits)
		})
		return err
	}, free+":made")
	if errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	return err
}

// Release returns the token. It makes one attempt, and further calls do nothing. After an error the token may be lost. A
// Permit is not safe for concurrent use.
func (p *Permit) Release(ctx context.Context) error {
	if p.released {
		return nil
	}
	p.released = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	free, taken := p.t.keys(p.key)
	_, err := p.t.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.HIncrBy(ctx, taken, p.t.name, -1)
		return push(ctx, tx, free, 1)
	})
	if err != nil {
		return fmt.Errorf("redistokens: release %q: %w", p.key, err)
	}
	return nil
}

// ReleaseAll returns all tokens of key that are counted for the name of this process. A process calls it when it starts,
// before it acquires any, and when its predecessor has ended.
func (t *Tokens) ReleaseAll(ctx context.Context, key string) error {
	free, taken := t.keys(key)
	for {
		err := t.rdb.Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.HGet(ctx, taken, t.name).Int()
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HDel(ctx, taken, t.name)
				return push(ctx, p, free, n)
			})
			return err
		}, taken)
		switch {
		case errors.Is(err, redis.TxFailedErr): // another process has taken or returned a token meanwhile
		case err == nil, errors.Is(err, redis.Nil):
			return nil
		default:
			return fmt.Errorf("redistokens: release all of %q: %w", key, err)
		}
	}
}

// push queues the return of n tokens.
func push(ctx context.Context, p redis.Pipeliner, free string, n int) error {
	for range n {
		p.RPush(ctx, free, token)
	}
	return nil
}

func (t *Tokens) keys(key string) (free, taken string) {
	free = t.prefix + "{" + key + "}"
	return free, free + ":taken"
}
