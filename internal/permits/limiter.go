package permits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/dlock"
)

// Outcomes of [Limiter.Take], to be tested with errors.Is.
var (
	// ErrSaturated means that no permit is to be had now; the error is a [*SaturatedError].
	ErrSaturated = errors.New("permits: all are in use")

	// ErrClosed means that Run has ended, or is about to.
	ErrClosed = errors.New("permits: closed")
)

// SaturatedError says when to try again.
type SaturatedError struct {
	RetryAfter time.Duration
}

// Error implements error.
func (e *SaturatedError) Error() string {
	return fmt.Sprintf("%v, retry after %v", ErrSaturated, e.RetryAfter)
}

// Is makes the error match [ErrSaturated].
func (e *SaturatedError) Is(target error) bool { return target == ErrSaturated }

// Semaphore is what a [Limiter] leases from; redislock.Semaphore is one. Its
// number of permits is the bound.
type Semaphore interface {
	dlock.Semaphore
	dlock.Resizer

	// Usage returns how many permits key has, how many are held, and how many
	// leases are waited for.
	Usage(ctx context.Context, key string) (permits, held, waiters int, err error)
}

// Config is the configuration of a [Limiter].
type Config struct {
	// Key names what is bounded. All instances use the same key. Empty means "permits".
	Key string

	// Permits is how many operations are in flight at most, over all instances. It
	// must be the number that the semaphore is configured with; if Key is resized
	// there, that number counts from the next look on. It is required.
	Permits int

	// TTL is that of the semaphore: how long the permits of an instance that has
	// died are missing. 0 means 3 s.
	TTL time.Duration

	// Timeout bounds a call to the store, and so how long Take may wait for it.
	// 0 means 250 ms; it is never more than TTL/4.
	Timeout time.Duration

	// MaxBlock is the most permits of one lease. 0 means 1000.
	MaxBlock int

	// RetryAfter is what refused callers are told. 0 means 1 s.
	RetryAfter time.Duration

	// Drain is how long Run waits at its end for operations in flight. 0 means 10 s.
	Drain time.Duration
}

// Limiter bounds how many operations are in flight over all instances, by permits
// that it leases in blocks and gives out itself. See the comment of the package
// for what it promises. It is safe for concurrent use.
type Limiter struct {
	sem Semaphore // nil: a bound for this process alone
	cfg Config

	gate     gate
	peak     atomic.Int64 // most in use since the last tick
	low      atomic.Int64 // ask for more when this many are left; -1: never
	asked    atomic.Bool  // whether somebody has since the last answer
	watched  atomic.Bool  // whether whoever leaves has to look at the books
	look     atomic.Bool  // whether to look at the store at once
	rejected atomic.Int64
	calls    atomic.Int64
	wake     chan struct{} // has room for one

	mu    sync.Mutex
	books books

	// What follows belongs to Run.
	peaks      [history]int // most in use, by tick, the latest first
	prefetchAt time.Time    // not before
	presence   *dlock.Lease // by which the others count this instance
	background sync.WaitGroup
}

// New returns a Limiter that leases from sem once [Limiter.Run] runs. Without a
// semaphore (nil) it bounds the operations of this process alone by
// Config.Permits, and needs no Run.
func New(sem Semaphore, cfg Config) (*Limiter, error) {
	if cfg.Permits < 1 || cfg.Permits > 1<<30 {
		return nil, fmt.Errorf("permits: %d permits: %w", cfg.Permits, dlock.ErrInvalidPermits)
	}
	cfg.Key = cmp.Or(cfg.Key, "permits")
	cfg.TTL = cmp.Or(cfg.TTL, 3*time.Second)
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 250*time.Millisecond), cfg.TTL/4)
	cfg.MaxBlock = cmp.Or(cfg.MaxBlock, 1000)
	cfg.RetryAfter = cmp.Or(cfg.RetryAfter, time.Second)
	cfg.Drain = cmp.Or(cfg.Drain, 10*time.Second)
	l := &Limiter{sem: sem, cfg: cfg, wake: make(chan struct{}, 1)}
	l.books = books{permits: cfg.Permits, instances: 1, blocks: map[*block]struct{}{}}
	l.low.Store(-1)
	if sem == nil {
		l.gate.resize(cfg.Permits)
	}
	return l, nil
}

// Resize changes the number of permits, for all instances that use the key. More can be taken
// at once here, and elsewhere when they have asked the store, in a second or so. Fewer take
// nothing from operations in flight. It blocks for one call to the store, at most
// Config.Timeout. After an error the number may have changed or not.
func (l *Limiter) Resize(ctx context.Context, n int) error {
	if n < 1 || n > 1<<30 {
		return fmt.Errorf("permits: %d permits: %w", n, dlock.ErrInvalidPermits)
	}
	if l.sem == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cfg.Permits, l.books.permits = n, n
		l.apply(time.Now())
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	if err := l.sem.Resize(ctx, l.cfg.Key, n); err != nil {
		return fmt.Errorf("permits: %w", err)
	}
	return nil
}

// Take takes a permit for one operation; release gives it back, and may be called
// more than once. In the common case it is a few instructions. When the blocks of
// this instance are in use it waits for one answer of the store, at most
// Config.Timeout, and never for a holder. It returns [ErrSaturated] when there is
// none to be had, [ErrClosed] at the end, and the cause of ctx when that ends
// first. After an error nothing is held.
func (l *Limiter) Take(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.enter() {
		return l.leaver(), nil
	}
	return l.takeSlow(ctx)
}

// takeSlow asks the store, for as long as that has permits and others are quicker.
func (l *Limiter) takeSlow(ctx context.Context) (func(), error) {
	var patience <-chan time.Time // most refusals need no timer
	for {
		f, err := l.ask()
		if err != nil {
			return nil, err
		}
		if patience == nil {
			patience = time.After(l.cfg.Timeout)
		}
		late := false
		select {
		case <-f.done:
		case <-patience:
			late = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case l.enter():
			return l.leaver(), nil
		case late || !f.granted:
			return nil, l.saturated()
		}
		patience = nil // the store has permits, and is about to be asked again
	}
}

// enter takes a permit of this instance, and has more leased before they are out.
func (l *Limiter) enter() bool {
	capacity, used, ok := l.gate.enter()
	if !ok {
		return false
	}
	for most := l.peak.Load(); int64(used) > most && !l.peak.CompareAndSwap(most, int64(used)); {
		most = l.peak.Load()
	}
	if int64(capacity-used) <= l.low.Load() && !l.asked.Load() && l.asked.CompareAndSwap(false, true) {
		l.nudge()
	}
	return true
}

// leaver returns the release of one operation.
func (l *Limiter) leaver() func() {
	var once atomic.Bool
	return func() {
		if once.Swap(true) {
			return
		}
		if l.watched.Load() {
			l.leaveWatched()
			return
		}
		l.gate.leave()
		if l.watched.Load() { // a block began to drain meanwhile
			l.settle()
		}
	}
}

// saturated is the refusal.
func (l *Limiter) saturated() error {
	l.rejected.Add(1)
	return &SaturatedError{RetryAfter: l.cfg.RetryAfter}
}

// nudge wakes Run.
func (l *Limiter) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stats is a moment of a [Limiter].
type Stats struct {
	Permits   int   // over all instances
	Leased    int   // by this instance, in the store
	Capacity  int   // that this instance serves: less than Leased while blocks drain, more while it is on its own
	InUse     int   // by operations of this instance
	Instances int   // that were seen last
	Remaining int   // about how many more operations could begin
	Alone     bool  // whether the store is away, or was a moment ago
	Rejected  int64 // since the beginning
	Calls     int64 // to the store since the beginning, without renewals

	// Reset is how long a refused caller should wait.
	Reset time.Duration
}

// Stats returns the present numbers, for metrics and for answers to clients.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	capacity, used := l.gate.load()
	b := &l.books
	s := Stats{
		Permits: b.permits, Leased: b.live + b.draining, Capacity: capacity, InUse: used, Instances: b.instances,
		Remaining: max(0, capacity-used), Alone: b.alone(time.Now()),
		Rejected: l.rejected.Load(), Calls: l.calls.Load(), Reset: l.cfg.RetryAfter,
	}
	if l.sem != nil && !s.Alone && !b.closing {
		s.Remaining += max(0, b.permits-b.held)
	}
	return s
}
