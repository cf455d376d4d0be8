package redlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// fenceTTL is how long a server remembers the last token of a key. Its clock makes
// forgetting it safe; remembering it covers a clock that is set back.
const fenceTTL = 24 * time.Hour

// Locker locks keys on a majority of servers. Close it to wait for what it does in the
// background.
type Locker struct {
	cfg        Config
	nodes      []*node
	quorum     int
	renewer    *driver.Renewer
	background driver.Background // calls to servers: they end within twice Config.Timeout
	process    string
	calls      atomic.Uint64
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
	_ dlock.CounterRaiser = (*Locker)(nil)
)

// New returns a Locker on independent servers: at least three, and best an odd number. It does not close the clients.
// It refuses clients that repeat commands by themselves or ignore deadlines, as [redislock.New] does.
func New(servers []redis.UniversalClient, cfg Config) (*Locker, error) {
	errs := []error{cfg.validate()}
	if len(servers) < 3 {
		errs = append(errs, fmt.Errorf("%d servers have no majority that survives the loss of one", len(servers)))
	}
	seen := map[string]bool{}
	for _, rdb := range servers {
		errs = append(errs, redisx.Check(rdb))
		switch c := rdb.(type) {
		case *redis.Client:
			name := c.Options().Addr
			if seen[name] {
				errs = append(errs, fmt.Errorf("server %s is named twice", name))
			}
			seen[name] = true
		case *redis.ClusterClient:
			errs = append(errs, errors.New("a cluster is no server of its own"))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	l := &Locker{cfg: cfg, quorum: len(servers)/2 + 1, process: rand.Text()}
	for _, rdb := range servers {
		n := &node{rdb: rdb, limit: cfg.Timeout}
		n.rollback = driver.NewRollback(driver.RollbackConfig{
			TTL: cfg.TTL, Pause: cfg.Timeout / 4, Timeout: 2 * cfg.Timeout,
			Revert: func(ctx context.Context, h dlock.Held) (bool, error) { return l.revert(ctx, n, h) },
		})
		l.nodes = append(l.nodes, n)
	}
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
	return l, nil
}

func (l *Locker) fenceTTL() int64 { return max(fenceTTL, 2*l.cfg.TTL).Milliseconds() }

// newID returns the owner of an attempt.
func (l *Locker) newID() string {
	return l.process + "-" + strconv.FormatUint(l.calls.Add(1), 10) + "-" + strconv.FormatInt(l.cfg.TTL.Milliseconds(), 10)
}

// TryAcquire implements [dlock.Locker]. A server that has lost its data counts as one
// that another owner has, for a time.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, key); lease != nil || err != nil {
		return lease, err
	}
	lease, _, err := l.try(ctx, key)
	return lease, err
}

// Acquire implements [dlock.Locker]. It retries until ctx ends. If the first attempt finds no majority of servers, it
// fails. A waiter continues until there has been no majority for a TTL.
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, key); lease != nil || err != nil {
		return lease, err
	}
	lease, left, err := l.try(ctx, key)
	if errors.Is(err, dlock.ErrHeld) {
		return l.wait(ctx, key, left)
	}
	return lease, err
}

// AcquireAll implements [dlock.MultiLocker]: it waits for one key after the other, in
// order, and releases all if one fails.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// Close ends all leases as lost, with the reason [dlock.Closed], and releases them. Then it waits until every call to a
// server has ended and every uncertain attempt has been released, or a TTL has passed. If ctx ends first, Close
// returns the error of ctx, and the rest expires by its TTL.
func (l *Locker) Close(ctx context.Context) error {
	err := errors.Join(l.renewer.Close(ctx), l.background.Wait(ctx))
	closed := ask(l, func(n *node) (any, error) { return nil, n.rollback.Close(ctx) })
	for range l.nodes {
		err = errors.Join(err, (<-closed).err)
	}
	return err
}
