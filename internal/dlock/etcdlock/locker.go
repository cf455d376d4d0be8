package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/internal/dlock"
)

// Config is the configuration of a [Locker] or an [RW].
type Config struct {
	// TTL is how long etcd keeps a grant that is not renewed: the time that a key
	// stays locked after its holder has died. A live holder renews every TTL/3. It is
	// in whole seconds, rounded up, and etcd may keep a grant for longer: for one and
	// a half election timeouts at least. 0 means 30 s.
	TTL time.Duration

	// MaxHold ends a lease that long after it was granted, renewed or not. 0 means no
	// limit.
	MaxHold time.Duration

	// Timeout bounds one round trip. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// NoReentry makes a holder that acquires its key again, with the context of its
	// lease, fail with [dlock.ErrReentry]. The default is another lease of the grant.
	NoReentry bool

	// Prefix begins every key in etcd, and ends with a slash. Empty means
	// "shop/locks/", for an RW "shop/rwlocks/".
	Prefix string
}

// validate completes the configuration.
func (cfg *Config) validate(prefix string) error {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	if rest := cfg.TTL % time.Second; rest > 0 {
		cfg.TTL += time.Second - rest
	}
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 2*time.Second), cfg.TTL/3)
	cfg.Prefix = cmp.Or(cfg.Prefix, prefix)
	var errs []error
	if cfg.TTL < time.Second {
		errs = append(errs, fmt.Errorf("TTL %v is less than a second", cfg.TTL))
	}
	if !strings.HasSuffix(cfg.Prefix, "/") {
		errs = append(errs, fmt.Errorf("prefix %q does not end with a slash", cfg.Prefix))
	}
	return errors.Join(errs...)
}

// Locker locks keys in etcd. Close it to end what it does in the background.
type Locker struct{ s *store }

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
)

// New returns a Locker on cli, which it does not close.
func New(cli *clientv3.Client, cfg Config) (*Locker, error) {
	if err := cfg.validate(defaultPrefix); err != nil {
		return nil, fmt.Errorf("etcdlock: %w", err)
	}
	return &Locker{newStore(cli, cfg)}, nil
}

// Acquire implements [dlock.Locker]. It waits in the queue of key. A waiter whose
// place is lost, because etcd did not hear of it for a TTL or because somebody
// revoked its lease, gets [dlock.ErrUncertain] together with [dlock.ErrLost].
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := l.enter(ctx, key); lease != nil || err != nil {
		return lease, err
	}
	return named(key)(l.s.acquire(ctx, key, exclusive, l))
}

// TryAcquire implements [dlock.Locker]. It does not overtake a queue.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := l.enter(ctx, key); lease != nil || err != nil {
		return lease, err
	}
	return named(key)(l.s.tryAcquire(ctx, key, exclusive, l))
}

// AcquireAll implements [dlock.MultiLocker]. It waits for one key after the other.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := l.enter(ctx, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// Close ends all leases as lost, with the reason [dlock.Closed], and the watches; it revokes
// the leases of etcd, also those that nobody uses, and waits until they and every uncertain
// acquisition have been given back, or their TTL has passed, or ctx has ended: then it
// returns the error of ctx, and the rest is left to the TTL. What is acquired later is lost
// at once.
func (l *Locker) Close(ctx context.Context) error { return l.s.close(ctx) }

// enter is what comes before an acquisition.
func (l *Locker) enter(ctx context.Context, keys ...string) (*dlock.Lease, error) {
	if lease, err := dlock.Reenter(ctx, l, keys...); lease != nil || err != nil {
		return lease, err
	}
	return nil, mayAcquire(ctx, keys...)
}

func mayAcquire(ctx context.Context, keys ...string) error {
	if ctx.Err() != nil {
		return dlock.Ended(ctx)
	}
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return err
		}
	}
	return nil
}

// named adds key to an error.
func named(key string) func(*dlock.Lease, error) (*dlock.Lease, error) {
	return func(lease *dlock.Lease, err error) (*dlock.Lease, error) {
		if err != nil {
			return nil, fmt.Errorf("etcdlock: %q: %w", key, err)
		}
		return lease, nil
	}
}
