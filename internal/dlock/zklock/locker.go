package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/zookeeper"
)

// Config is the configuration of a [Locker] or an [RW]. How long a key stays locked
// after its holder has died is the timeout of the session.
type Config struct {
	// MaxHold ends a lease that long after it was granted. 0 means no limit.
	MaxHold time.Duration

	// NoReentry makes a holder that acquires its key again, with the context of its
	// lease, fail with [dlock.ErrReentry]. The default is another lease of the grant.
	NoReentry bool

	// Prefix is the node below which the keys are, seen from the root of the
	// session. Empty means "/locks" for a Locker and "/rwlocks" for an RW.
	Prefix string
}

// validate completes the configuration.
func (cfg *Config) validate(prefix string) error {
	cfg.Prefix = cmp.Or(cfg.Prefix, prefix)
	if !strings.HasPrefix(cfg.Prefix, "/") || strings.HasSuffix(cfg.Prefix, "/") {
		return fmt.Errorf("zklock: prefix %q does not begin, or ends, with a slash", cfg.Prefix)
	}
	return nil
}

// Locker locks keys in ZooKeeper.
type Locker struct {
	queue *queue
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
)

// New returns a Locker on s, which it does not close. The end of s ends all leases: when s is
// closed they are lost before their nodes are gone.
func New(s *zookeeper.Session, cfg Config) (*Locker, error) {
	if err := cfg.validate("/locks"); err != nil {
		return nil, err
	}
	return &Locker{queue: newQueue(s, cfg)}, nil
}

// Acquire implements [dlock.Locker]. It waits in the queue of key. When no server
// has answered for the timeout of the session, it returns an error instead of
// waiting on.
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := l.enter(ctx, key); lease != nil || err != nil {
		return lease, err
	}
	return l.queue.acquire(ctx, claim{key: key, dir: l.dir(key), kind: kindLease, backend: l})
}

// TryAcquire implements [dlock.Locker]. It does not overtake a queue.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := l.enter(ctx, key); lease != nil || err != nil {
		return lease, err
	}
	return l.queue.try(ctx, claim{key: key, dir: l.dir(key), kind: kindLease, backend: l})
}

// Inspect implements [dlock.Inspector].
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	if err := checkKey(key); err != nil {
		return dlock.State{}, err
	}
	return l.queue.inspect(ctx, claim{key: key, dir: l.dir(key)}, func(p place, zxid uint64) (dlock.Fence, error) {
		return dlock.Fence{Token: zxid, Owner: p.id}, nil
	})
}

// ForceRelease implements [dlock.ForceReleaser]. Who deletes the node of a holder by
// other means does the same.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return l.queue.force(ctx, claim{key: key, dir: l.dir(key)}, func(_ place, path string) error {
		return l.queue.s.Delete(ctx, path, -1)
	})
}

// enter is what comes before an acquisition.
func (l *Locker) enter(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := dlock.Reenter(ctx, l, key); lease != nil || err != nil {
		return lease, err
	}
	if ctx.Err() != nil {
		return nil, dlock.Ended(ctx)
	}
	return nil, checkKey(key)
}

func (l *Locker) dir(key string) string { return l.queue.cfg.Prefix + "/" + escape(key) }

// explain makes an error of the session one of dlock.
func explain(what, key string, err error) error {
	if errors.Is(err, zookeeper.ErrUncertain) {
		err = fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
	}
	return fmt.Errorf("zklock: %s %q: %w", what, key, err)
}
