package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

// maxTokens bounds the tokens of one semaphore, which are made one by one.
const maxTokens = 4096

// TokensConfig is the configuration of [Tokens].
type TokensConfig struct {
	// Permits is how many tokens a key has. The client that uses a key first makes
	// them; what others are configured with does not matter then. 0 means 1.
	Permits int

	// TTL is how long Redis keeps the tokens of a client that does not renew: the
	// time until those of one that has died are back. 0 means 30 s.
	TTL time.Duration

	// Timeout bounds one round trip, apart from what a waiting one waits. 0 means
	// 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// Name says which process this is, so that ReleaseAll can give back what it held
	// before it was restarted. No two living processes may have the same name.
	// Empty means a random one.
	Name string

	// Prefix begins every key in Redis. Empty means "shop:sem:".
	Prefix string

	// Blocking is a client for commands that wait on the server, a connection for
	// each key that is waited for. Nil means one with the options of the other
	// client and a pool of its own, which Close closes.
	Blocking redis.UniversalClient
}

// Tokens is [dlock.Semaphore] in Redis with tokens in lists.
type Tokens struct {
	rdb      redis.UniversalClient
	blocking redis.UniversalClient
	owned    bool // blocking is closed by Close
	permits  int
	ttl      time.Duration
	timeout  time.Duration
	block    time.Duration // how long one command waits on the server
	name     string
	named    bool
	client   string // random: tells this client from earlier ones with its name
	prefix   string
	epochs   epochs
	calls    *batcher
	renewals *batcher // apart, so that a renewal waits for no other call
	renewer  *dlock.Renewer
	undoer   undoer
	fetchers sync.WaitGroup

	mu      sync.Mutex
	taps    map[string]*tap
	holders int // made so far
}

var _ dlock.Semaphore = (*Tokens)(nil)

// NewTokens returns Tokens on rdb, which it does not close. It refuses the
// clients that [New] refuses.
func NewTokens(rdb redis.UniversalClient, cfg TokensConfig) (*Tokens, error) {
	ttl := cmp.Or(cfg.TTL, 30*time.Second)
	timeout := min(cmp.Or(cfg.Timeout, 2*time.Second), ttl/3)
	t := &Tokens{
		rdb:      rdb,
		blocking: cfg.Blocking,
		permits:  cmp.Or(cfg.Permits, 1),
		ttl:      ttl,
		timeout:  timeout,
		block:    max(min(time.Second, ttl/4), time.Millisecond),
		name:     cmp.Or(cfg.Name, rand.Text()),
		named:    cfg.Name != "",
		client:   rand.Text(),
		prefix:   cmp.Or(cfg.Prefix, semaphorePrefix),
		calls:    newBatcher(rdb, timeout),
		renewals: newBatcher(rdb, timeout),
		undoer:   undoer{timeout: timeout},
		taps:     map[string]*tap{},
	}
	if ttl < 4*time.Millisecond {
		return nil, fmt.Errorf("redislock: TTL %v is less than four milliseconds", ttl)
	}
	if t.permits < 1 || t.permits > maxTokens {
		return nil, fmt.Errorf("redislock: %d permits: %w", cfg.Permits, dlock.ErrInvalidPermits)
	}
	if strings.ContainsAny(t.name, "{} ") {
		return nil, fmt.Errorf("redislock: name %q has a brace or a blank", t.name)
	}
	if err := checkClient(rdb); err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	if t.blocking == nil {
		t.blocking, t.owned = apart(rdb), true
	}
	if t.blocking == nil {
		return nil, errors.New("redislock: a client of this kind needs TokensConfig.Blocking")
	}
	t.renewer = dlock.NewRenewer(dlock.RenewerConfig{TTL: ttl, Renew: t.renew})
	return t, nil
}

// apart returns a client as rdb with a pool of its own, or nil if it does not
// know the kind. Connections that wait on the server would starve the others.
func apart(rdb redis.UniversalClient) redis.UniversalClient {
	const pool = 256 // connections are made when they are needed
	switch c := rdb.(type) {
	case *redis.Client:
		opts := *c.Options()
		opts.PoolSize, opts.MinIdleConns, opts.MaxActiveConns = pool, 0, 0
		return redis.NewClient(&opts)
	case *redis.ClusterClient:
		opts := *c.Options()
		opts.PoolSize, opts.MinIdleConns, opts.MaxActiveConns = pool, 0, 0
		return redis.NewClusterClient(&opts)
	}
	return nil
}

// TryAcquire implements [dlock.Semaphore].
func (t *Tokens) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := t.check(ctx, key, n); err != nil {
		return nil, err
	}
	lease, err := t.direct(ctx, key, n, false)
	if lease == nil && err == nil {
		return nil, fmt.Errorf("redislock: %d permits of %q: %w", n, key, dlock.ErrHeld)
	}
	return lease, err
}

// Acquire implements [dlock.Semaphore].
func (t *Tokens) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := t.check(ctx, key, n); err != nil {
		return nil, err
	}
	lease, err := t.direct(ctx, key, n, true)
	if lease != nil || err != nil {
		return lease, err
	}
	return t.wait(ctx, key, n)
}

// Close waits until everything with an unknown outcome has been given back, or
// ctx has ended: then it returns the error of ctx, and the rest is left to the
// TTL. Leases are not released; that is for their holders. No call may be waiting.
func (t *Tokens) Close(ctx context.Context) error {
	idle := make(chan struct{})
	go func() { // ends within the block time and a round trip, as every fetcher does
		defer close(idle)
		t.fetchers.Wait()
	}()
	var err error
	select {
	case <-idle:
		err = t.undoer.wait(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if t.owned {
		err = errors.Join(err, t.blocking.Close())
	}
	return err
}

// check refuses what no number of tokens could allow, before anything is sent.
func (t *Tokens) check(ctx context.Context, key string, n int) error {
	if ctx.Err() != nil {
		return dlock.Ended(ctx)
	}
	if err := checkKey(key); err != nil {
		return err
	}
	if err := dlock.CheckPermits(key, n, maxTokens); err != nil {
		return fmt.Errorf("redislock: %w", err)
	}
	return nil
}
