package cohort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// ErrFull says that as many wait for a key as may. The item had no effect.
var ErrFull = errors.New("cohort: the queue is full")

// ErrLeft means that the caller's time was over while its item was in a batch. The batch continues, and only Commit
// will know what becomes of the item.
var ErrLeft = errors.New("cohort: the batch goes on without its caller")

// grace is how long a caller whose time is over waits for its batch. That is enough for most of them to end, and for the
// work to stop if nobody else wants it.
const grace = 250 * time.Millisecond

// Config configures a [Group] whose keys are of type K, whose leases are described by an L, and whose
// items are of type T. Hold and Commit are required.
type Config[K comparable, L, T any] struct {
	// Hold runs fn while it holds key, as [dlock.Do] does with a Locker. The context of fn ends when the lease is
	// lost. No other process runs such an fn for key meanwhile, as far as leases can guarantee that. Hold waits for
	// the lease until ctx ends. If it returns an error without a call of fn, all callers that have waited since its
	// start get that error.
	Hold func(ctx context.Context, key K, fn func(ctx context.Context, lease L) error) error

	// Commit carries out items in one step, all of them or none. It passes the fencing token of lease to the store,
	// which decides whether the lease is still valid. Each item has its own result. Nil ends the wait of all. It is
	// never called twice at once for one key by one Group.
	Commit func(ctx context.Context, key K, lease L, items []T) error

	// Retry reports whether there is to be another attempt under another lease after an error
	// of Commit, or of Hold without a call of fn. It is not asked when the context of fn has
	// ended, which always means yes. Default: after [dlock.ErrFenced] and [dlock.ErrLost].
	Retry func(error) bool

	// Common reports whether an error of Commit is everybody's, so that it would be the same
	// with fewer items. After any other one, the batch is split. Default: never.
	Common func(error) bool

	// Unknown reports whether an error of Commit leaves open what became of the items. The Group then tries them again
	// until their contexts end, even if their maximum wait is over. Default: never.
	Unknown func(error) bool

	// Refuse, if set, is called before each batch, without a lease. It returns a function that returns the error of an
	// item that cannot be served now, and nil for others. It is applied to those that waited before Refuse was called
	// and were never committed. Nil refuses nobody.
	Refuse func(ctx context.Context, key K) func(item T) error

	MaxQueue   int           // items that wait for one key; default 10,000
	MaxBatch   int           // items in one call of Commit; default 256
	MaxBatches int           // batches under one lease; default 4
	MaxHold    time.Duration // no batch begins later than this after the first one of a lease; default 20 ms
}

// Group serves those who call [Group.Do] with one key in batches, each under a lease that
// they share. It is safe for concurrent use.
type Group[K comparable, L, T any] struct {
	cfg     Config[K, L, T]
	leaders sync.WaitGroup // one for each line

	mu    sync.Mutex
	lines map[K]*line[K, T] // of the keys for which somebody waits or is served
	seq   uint64            // of the latest arrival
}

// New returns a Group. It has nothing running while nobody calls Do.
func New[K comparable, L, T any](cfg Config[K, L, T]) *Group[K, L, T] {
	if cfg.Retry == nil {
		cfg.Retry = func(err error) bool { return errors.Is(err, dlock.ErrFenced) || errors.Is(err, dlock.ErrLost) }
	}
	if cfg.Common == nil {
		cfg.Common = func(error) bool { return false }
	}
	if cfg.Unknown == nil {
		cfg.Unknown = func(error) bool { return false }
	}
	cfg.MaxQueue = cmp.Or(cfg.MaxQueue, 10_000)
	cfg.MaxBatch = cmp.Or(cfg.MaxBatch, 256)
	cfg.MaxBatches = cmp.Or(cfg.MaxBatches, 4)
	cfg.MaxHold = cmp.Or(cfg.MaxHold, 20*time.Millisecond)
	return &Group[K, L, T]{cfg: cfg, lines: make(map[K]*line[K, T])}
}

// Do has item committed in a batch, with others of key, and returns nil once it is.
//
// It blocks in the queue of key until a leader takes the item into a batch, or waiting ends. Then it blocks until the
// batch has its answer. waiting limits the time in the queue, unless an attempt had an unknown outcome. ctx limits the
// whole call; both may be the same. An item in a batch cannot be taken back. If ctx ends then, Do waits 250 ms for the
// batch, whose context ends when the callers of all its items have gone.
//
// Errors: [ErrFull]; [ErrLeft] with the cause of the end of ctx, after which Commit may still use the item. Or the
// cause of the end of waiting or ctx, joined with the latest error of Commit if the item was to be tried again. Or the
// answer of Refuse, or an error of Hold. Or an error of Commit about this item alone, or about the whole batch. Only
// after an error of Commit can the item have had an effect, if the error says so.
func (g *Group[K, L, T]) Do(ctx, waiting context.Context, key K, item T) error {
	for _, c := range []context.Context{ctx, waiting} {
		if c.Err() != nil {
			return context.Cause(c)
		}
	}
	t := &ticket[T]{item: item, ctx: ctx, answer: make(chan error, 1)}
	l, err := g.join(key, t)
	if err != nil {
		return err
	}
	select {
	case err := <-t.answer:
		return err
	case <-ctx.Done():
	case <-waiting.Done():
	}
	if err := g.leave(l, t, cmp.Or(context.Cause(ctx), context.Cause(waiting))); err != nil {
		return err
	}
	select {
	case err := <-t.answer:
		return err
	case <-ctx.Done():
		if err := g.leave(l, t, context.Cause(ctx)); err != nil {
			return err
		}
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-t.answer:
		return err
	case <-late.C:
		return fmt.Errorf("%w: %w", ErrLeft, context.Cause(ctx))
	}
}

// Wait waits until no leader is left, or ctx ends. A leader ends some time after the last Do has returned, because it
// still has to release its lease.
func (g *Group[K, L, T]) Wait(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		g.leaders.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
