package redlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/redisclient"
)

// fenceTTL is how long a server remembers the last token of a key. Its clock makes
// forgetting it safe; remembering it covers a clock that is set back.
const fenceTTL = 24 * time.Hour

// Config is the configuration of a [Locker]. All clients of a lock need the same TTL
// and Settle.
type Config struct {
	// TTL is how long a server keeps a grant that is not renewed: the time that a key
	// stays locked after its holder has died. A live holder renews every TTL/3.
	// 0 means 30 s.
	TTL time.Duration

	// Settle is how long a server without data grants nothing, because it may have
	// lost grants that are still believed in: when it is first used, and when it has
	// lost its data. 0 means TTL. Negative means that it grants at once: then a lock
	// can have two holders for a while after a server was restarted empty.
	Settle time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not. The servers
	// are not told: the key is free when the TTL of the last renewal is over.
	// 0 means no limit.
	MaxHold time.Duration

	// Timeout bounds one call to one server. 0 means 500 ms; it is never more than
	// TTL/6.
	Timeout time.Duration

	// Retry spreads the attempts of a waiter. The default is 2 ms at first, and up to
	// 100 ms.
	Retry dlock.Backoff

	// NoReentry makes a holder that acquires its key again, with the context of its
	// lease, fail with [dlock.ErrReentry]. The default is another lease of the grant.
	NoReentry bool

	// Prefix begins every key in Redis. Empty means "shop:redlock:".
	Prefix string
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	cfg.Settle = max(0, cmp.Or(cfg.Settle, cfg.TTL))
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 500*time.Millisecond), cfg.TTL/6)
	cfg.Retry.Min = cmp.Or(cfg.Retry.Min, 2*time.Millisecond)
	cfg.Retry.Max = cmp.Or(cfg.Retry.Max, 100*time.Millisecond)
	cfg.Prefix = cmp.Or(cfg.Prefix, defaultPrefix)
	var errs []error
	if cfg.TTL < 10*time.Millisecond {
		errs = append(errs, fmt.Errorf("TTL %v is less than 10 ms", cfg.TTL))
	}
	if strings.ContainsAny(cfg.Prefix, "{}") {
		errs = append(errs, fmt.Errorf("prefix %q has a brace", cfg.Prefix))
	}
	return errors.Join(errs...)
}

// Locker locks keys on a majority of servers. Close it to wait for what it does in the
// background.
type Locker struct {
	cfg        Config
	nodes      []*node
	quorum     int
	renewer    *dlock.Renewer
	turns      dlock.Turns
	background background
	process    string
	calls      atomic.Uint64
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
	_ dlock.Reseeder      = (*Locker)(nil)
)

// New returns a Locker on servers that know nothing of one another, at least three and
// best an odd number; it does not close the clients. It refuses clients that repeat
// commands by themselves or ignore deadlines, as [redislock.New] does.
func New(servers []redis.UniversalClient, cfg Config) (*Locker, error) {
	errs := []error{cfg.validate()}
	if len(servers) < 3 {
		errs = append(errs, fmt.Errorf("%d servers have no majority that survives the loss of one", len(servers)))
	}
	seen := map[string]bool{}
	for _, rdb := range servers {
		errs = append(errs, redisclient.Check(rdb))
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
		n.undo = dlock.NewUndo(dlock.UndoConfig{
			TTL: cfg.TTL, Pause: cfg.Timeout / 2, Timeout: 2 * cfg.Timeout,
			GiveBack: func(ctx context.Context, held []dlock.Held) ([]bool, error) { return l.giveBack(ctx, n, held) },
		})
		l.nodes = append(l.nodes, n)
	}
	l.renewer = dlock.NewRenewer(dlock.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
	return l, nil
}

func (l *Locker) fenceTTL() int64 { return max(fenceTTL, 2*l.cfg.TTL).Milliseconds() }

// newID returns the owner of an attempt.
func (l *Locker) newID() string { return l.process + "-" + strconv.FormatUint(l.calls.Add(1), 10) }

// TryAcquire implements [dlock.Locker]. A server that has lost its data counts as one
// that another owner has, for a time.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := l.enter(ctx, key); lease != nil || err != nil {
		return lease, err
	}
	lease, _, err := l.try(ctx, key)
	return lease, err
}

// Acquire implements [dlock.Locker]. It tries again and again; of those who acquire key
// in this process one does so, the others wait for their turn. If the first attempt finds
// no majority of servers it fails; a waiter goes on until there has been none for a TTL.
func (l *Locker) Acquire(ctx context.Context, key string) (lease *dlock.Lease, err error) {
	if lease, err := l.enter(ctx, key); lease != nil || err != nil {
		return lease, err
	}
	pass, err := l.turns.Take(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { // after a panic, too
		if ctx.Err() != nil {
			pass(nil)
		} else {
			pass(err)
		}
	}()
	var left time.Duration
	lease, left, err = l.try(ctx, key)
	if errors.Is(err, dlock.ErrHeld) {
		lease, err = l.wait(ctx, key, left)
	}
	return lease, err
}

// wait tries until it has key, or ctx ends, or no majority has answered for a TTL.
func (l *Locker) wait(ctx context.Context, key string, left time.Duration) (*dlock.Lease, error) {
	answered := time.Now()
	prev := l.cfg.Retry.Next(0)
	next := time.NewTimer(min(prev, left))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, dlock.Ended(ctx)
		case <-next.C:
		}
		lease, left, err := l.try(ctx, key)
		switch {
		case err == nil:
			return lease, nil
		case errors.Is(err, dlock.ErrHeld):
			answered = time.Now()
		case ctx.Err() != nil || time.Since(answered) > l.cfg.TTL:
			return nil, err
		}
		prev = l.cfg.Retry.Next(prev)
		next.Reset(min(prev, left))
	}
}

// AcquireAll implements [dlock.MultiLocker]: it waits for one key after the other, in
// order, and gives all back if one fails.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := l.enter(ctx, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// enter is what comes before an acquisition.
func (l *Locker) enter(ctx context.Context, keys ...string) (*dlock.Lease, error) {
	if lease, err := dlock.Reenter(ctx, l, keys...); lease != nil || err != nil {
		return lease, err
	}
	if ctx.Err() != nil {
		return nil, dlock.Ended(ctx)
	}
	return nil, nil
}

// Close waits until every call to a server has ended and every uncertain attempt has
// been given back, or its TTL has passed, or ctx has ended: then it returns the error
// of ctx, and the rest is left to the TTL. Before that it ends all leases as lost, with
// the reason [dlock.Closed], and gives them back.
func (l *Locker) Close(ctx context.Context) error {
	err := errors.Join(l.renewer.Close(ctx), l.background.wait(ctx))
	for _, n := range l.nodes {
		err = errors.Join(err, n.undo.Wait(ctx))
	}
	return err
}
