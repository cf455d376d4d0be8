package redistokens

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
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// maxTokens bounds the tokens of one semaphore, which are made one by one.
const maxTokens = 4096

// Tokens is [dlock.Semaphore] in Redis, standalone, behind Sentinel or in a Cluster. Its permits are tokens, each of
// which is in one of several lists. Package redissem is the better choice where it can be had. This one shows what
// the textbook's semaphore of a list needs besides LPOP and RPUSH.
//
// # Data
//
//	shop:sem:{KEY}:free         list    tokens that nobody has: 1, 2, ...
//	shop:sem:{KEY}:held:HOLDER  list    tokens that a holder has
//	shop:sem:{KEY}:holders      zset    HOLDER -> when it expires, by the clock of the server
//	shop:sem:{KEY}:reaped       zset    HOLDER that has expired -> when to read its list again
//	shop:sem:{KEY}:turn         list    the one turn to collect several tokens
//	shop:sem:{KEY}:withheld     list    tokens that wait for the end of a TTL, after a loss of data
//	shop:sem:{KEY}:tokens       hash    how many were made, and when; the last fence
//	shop:sem:used:NAME          set     keys that the process of that name has used; ends a day after the last one
//
// A HOLDER is NAME:RANDOM-N, one client of one key at a time. Its list is the truth about what it holds. A lost reply
// loses no token, because the token is in the list. The client retires that HOLDER, continues under a new one, and
// releases the tokens of the old list that belong to no lease. A holder renews all its tokens at once. The keys of a
// semaphore that is not used for a day expire together.
//
// # Operations
//
//	take       script  makes the tokens if there are none; LMOVE free held, as many as are needed; a fence   1 round trip
//	wait       BLMOVE free held LEFT RIGHT, on the server, for a second at most; then take                   1 + 1 round trips per token
//	arrived    script  with BLMOVE: ZADD holders, if a token has arrived for a holder that is not known        with it
//	release    script  LREM held, RPUSH free or withheld, if it was in the list: never more than is held      1 round trip
//	renew      script  ZADD holders; LRANGE held, which the client compares with what it knows               every TTL/3
//	reap       script  for holders that have expired: LRANGE held, and release                               by the client that sees them in take
//	reconcile  script  releases what is in a list and unknown to the client                               after an unknown outcome
//
// Every script is one round trip, which concurrent callers share, and costs O(tokens touched + tokens of the holder).
// Waiting polls nothing: the server serves blocked clients first come, first served. The callers of one process and
// key wait in one queue behind one connection, from a pool apart from that of other commands. A blocked request lasts
// for a second at most. So an expired holder is noticed within a second, and no request waits longer for a dead
// client.
//
// A waiter for one token takes the first one. A waiter for several tokens first waits for the turn, and holds no token
// meanwhile. With the turn, it keeps every token that arrives until it has enough. So waiters for one token do not
// starve it, and no two wait for each other's tokens. Between processes there is no strict order.
//
// # What a crash leaves behind
//
// A holder leaves its tokens until it expires. Then the next take of any client returns them, or ReleaseAll of the
// process that is restarted with the same name. A waiter leaves nothing, or the token that arrived for it, as a
// holder, even if the server lost its data while it waited. A request that is executed after its client was declared
// dead leaves a token in a list that is read again ten TTLs later.
//
// # What a loss of data does to the limit
//
// As in package redissem, the limit holds on each side of a loss, and not over both until the former holders are
// notified. On a server without its data, the first client creates the tokens again, as many as it is configured with.
// A client that remembers an earlier creation proves the loss. Then the tokens are withheld until one TTL after their
// creation, and so are tokens that are released meanwhile. A client that is new to the key takes them before that is known.
// A waiter counts no token that the server does not know. A failover can grant a process a token that it has already:
// then the earlier lease ends at its next renewal.
//
// The server needs Redis 6.2 or newer and the settings that the comment of package redislock names.
type Tokens struct {
	rdb      redis.UniversalClient
	blocking redis.UniversalClient
	owned    bool // blocking is closed by Close
	permits  int
	ttl      time.Duration
	maxHold  time.Duration
	timeout  time.Duration
	block    time.Duration // how long one command waits on the server
	name     string
	named    bool
	client   string // random: distinguishes this client from earlier ones with its name
	prefix   string
	epochs   redisx.Epochs
	calls    *redisx.Caller
	renewals *redisx.Caller // apart, so that a renewal waits for no other call
	renewer  *driver.Renewer
	rollback *driver.Rollback
	fetchers sync.WaitGroup

	mu      sync.Mutex
	taps    map[string]*tap
	holders int                // made so far
	retired map[string]*holder // by name: those with leases, or with requests in flight
}

var _ dlock.Semaphore = (*Tokens)(nil)

// New returns Tokens on rdb, which it does not close. It refuses the
// clients that [New] refuses.
func New(rdb redis.UniversalClient, cfg Config) (*Tokens, error) {
	ttl := cmp.Or(cfg.TTL, 30*time.Second)
	timeout := min(cmp.Or(cfg.Timeout, 2*time.Second), ttl/3)
	t := &Tokens{
		rdb:      rdb,
		blocking: cfg.Blocking,
		permits:  cmp.Or(cfg.Permits, 1),
		ttl:      ttl,
		maxHold:  cfg.MaxHold,
		timeout:  timeout,
		block:    max(min(time.Second, ttl/4), time.Millisecond),
		name:     cmp.Or(cfg.Name, rand.Text()),
		named:    cfg.Name != "",
		client:   rand.Text(),
		prefix:   cmp.Or(cfg.Prefix, defaultPrefix),
		calls:    redisx.NewCaller(rdb, timeout),
		renewals: redisx.NewCaller(rdb, timeout),
		taps:     map[string]*tap{},
		retired:  map[string]*holder{},
	}
	t.rollback = driver.NewRollback(driver.RollbackConfig{
		TTL: 10 * ttl, Pause: timeout / 4, Timeout: 2 * timeout, Revert: t.revert,
	})
	if ttl < 4*time.Millisecond {
		return nil, fmt.Errorf("redistokens: TTL %v is less than four milliseconds", ttl)
	}
	if t.permits < 1 || t.permits > maxTokens {
		return nil, fmt.Errorf("redistokens: %d permits: %w", cfg.Permits, dlock.ErrInvalidPermits)
	}
	if strings.ContainsAny(t.name, "{} ") {
		return nil, fmt.Errorf("redistokens: name %q has a brace or a blank", t.name)
	}
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("redistokens: %w", err)
	}
	if t.blocking == nil {
		t.blocking, t.owned = redisx.Apart(rdb, t.block+t.timeout), true
	}
	if t.blocking == nil {
		return nil, errors.New("redistokens: a client of this kind needs Config.Blocking")
	}
	t.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: ttl, Renew: t.renew})
	return t, nil
}

// TryAcquire implements [dlock.Semaphore].
func (t *Tokens) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := driver.EnterPermits(ctx, redisx.CheckKey, key, n, maxTokens); err != nil {
		return nil, err
	}
	lease, err := t.direct(ctx, key, n, false)
	if lease == nil && err == nil {
		return nil, fmt.Errorf("redistokens: %d permits of %q: %w", n, key, dlock.ErrHeld)
	}
	return lease, err
}

// Acquire implements [dlock.Semaphore].
func (t *Tokens) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if err := driver.EnterPermits(ctx, redisx.CheckKey, key, n, maxTokens); err != nil {
		return nil, err
	}
	lease, err := t.direct(ctx, key, n, true)
	if lease != nil || err != nil {
		return lease, err
	}
	return t.wait(ctx, key, n)
}

// Close ends all leases as lost, with the reason [dlock.Closed], and releases their tokens. Then it waits until
// everything with an unknown outcome has been released. If ctx ends before, Close returns the error of ctx, and the
// TTL frees the rest. No call may be waiting.
func (t *Tokens) Close(ctx context.Context) error {
	closed := t.renewer.Close(ctx)
	err := driver.Await(ctx, t.fetchers.Wait) // a fetcher ends within the block time and a round trip
	if err == nil {
		err = t.rollback.Wait(ctx)
	}
	if t.owned {
		err = errors.Join(err, t.blocking.Close())
	}
	return errors.Join(closed, err)
}
