package permits

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/dlock"
)

// Outcomes of [Limiter.Take], to be tested with errors.Is.
var (
	// ErrConcurrencyLimit means that no permit is available now; the error is a [*ConcurrencyLimitError].
	ErrConcurrencyLimit = errors.New("permits: all are in use")

	// ErrClosed means that Run has ended, or is about to.
	ErrClosed = errors.New("permits: closed")
)

// ConcurrencyLimitError carries the time after which to try again.
type ConcurrencyLimitError struct {
	RetryAfter time.Duration
}

// Error implements error.
func (e *ConcurrencyLimitError) Error() string {
	return fmt.Sprintf("%v, retry after %v", ErrConcurrencyLimit, e.RetryAfter)
}

// Is makes the error match [ErrConcurrencyLimit].
func (e *ConcurrencyLimitError) Is(target error) bool { return target == ErrConcurrencyLimit }

// Config is the configuration of a [Limiter].
type Config struct {
	// Permits is how many operations are in flight at most, over all instances, until
	// they are resized. It is required.
	Permits int

	// TTL is how long the store keeps the permits of an instance that has died. 0 means 3 s.
	TTL time.Duration

	// Timeout bounds a call to the store. Take may wait twice as long.
	// 0 means 250 ms; it is never more than TTL/4.
	Timeout time.Duration

	// Drain is how long Run waits at its end for operations in flight. 0 means 10 s.
	Drain time.Duration

	// OnDegraded is called when the instance begins to serve its share without the store, and
	// when it no longer does. It must not block. Nil means that nobody is notified.
	OnDegraded func(ctx context.Context, degraded bool)
}

// Limiter bounds how many operations are in flight over all instances. It leases permits
// from a [Store] and gives them out from memory. See the comment of the package for the
// guarantees. It is safe for concurrent use.
type Limiter struct {
	store Store // nil: a bound for this process alone
	cfg   Config
	id    string // of this instance, in the store

	every, spacing time.Duration // pauses: between two calls, and between two of an instance that wants more

	calls atomic.Int64
	wake  chan struct{} // has room for one

	mu       sync.Mutex
	capacity int // how many operations may be in flight; if fewer than are, none begins
	used     int
	peak     int   // most in use since the last call
	shunned  int   // refused since the last call: what this instance would have needed as well
	unshared int64 // permits that were given out without the store
	rejected int64
	load     load
	state    state
	pending  *flight // the next call, if somebody waits for it
	running  bool
	closing  bool
}

// state is what the instance has, and what it has seen of the others.
type state struct {
	granted, target, want    int
	permits, held, instances int       // over all instances
	until                    time.Time // when the lease expires
	degraded                 bool      // the last call failed
	lost                     bool      // the lease has expired, and no call has succeeded since
	asked                    time.Time // when the last call began
	denied                   time.Time // until when asking again is of no use
	demand                   float64   // permits that were needed within the last second, about
	seen                     bool      // whether any call has succeeded
}

// flight is one call to the store, for everybody who waits when it begins.
type flight struct {
	waiting int
	done    chan struct{} // closed after the call
}

// New returns a Limiter that leases permits from store once [Limiter.Run] runs. Without a store (nil) it bounds the
// operations of this process alone by Config.Permits, and needs no Run.
func New(store Store, cfg Config) (*Limiter, error) {
	if err := valid(cfg.Permits); err != nil {
		return nil, err
	}
	cfg.TTL = cmp.Or(cfg.TTL, 3*time.Second)
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 250*time.Millisecond), cfg.TTL/4)
	cfg.Drain = cmp.Or(cfg.Drain, 10*time.Second)
	l := &Limiter{store: store, cfg: cfg, id: rand.Text(), wake: make(chan struct{}, 1), every: cfg.TTL / 12, spacing: cfg.TTL / 100}
	l.state = state{permits: cfg.Permits, instances: 1}
	if store == nil {
		l.capacity = cfg.Permits
	}
	return l, nil
}

func valid(permits int) error {
	if permits < 1 || permits > 1<<30 {
		return fmt.Errorf("permits: %d permits: %w", permits, dlock.ErrInvalidPermits)
	}
	return nil
}

// Resize changes the number of permits, for all instances that share them. The others
// learn of it by their next calls, within TTL/12. Fewer take nothing from operations in
// flight. It blocks for one call to the store, at most Config.Timeout. After an error the
// number may have changed or not.
func (l *Limiter) Resize(ctx context.Context, n int) error {
	if err := valid(n); err != nil {
		return err
	}
	if l.store == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.state.permits, l.capacity = n, n
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	l.calls.Add(1)
	if err := l.store.Resize(ctx, n); err != nil {
		return fmt.Errorf("permits: resize: %w", err)
	}
	return nil
}

// Take takes a permit for one operation; release returns it, and may be called more than once. Usually it does not
// block. If all permits of this instance are in use and others may have some to spare, it waits for them, at most 2 *
// Config.Timeout. It returns [ErrConcurrencyLimit] when there is none, [ErrClosed] at the end, and the cause of ctx
// when that ends first. After an error nothing is held.
func (l *Limiter) Take(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if release := l.enter(); release != nil {
		return release, nil
	}
	return l.takeSlow(ctx)
}

// Refuse counts an operation that its caller refuses although there may be a permit, and returns
// a [*ConcurrencyLimitError]. The operation does not count as a need for permits.
func (l *Limiter) Refuse() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuse(0)
}

// refuse is Refuse for an operation that needs so many permits. It is called under mu.
func (l *Limiter) refuse(needs int) error {
	l.shunned += needs
	l.rejected++
	return &ConcurrencyLimitError{RetryAfter: l.load.refused()}
}

// takeSlow asks the store, for as long as other instances are about to give up permits.
func (l *Limiter) takeSlow(ctx context.Context) (func(), error) {
	var late <-chan time.Time // most refusals need no timer
	for {
		f, err := l.ask()
		if err != nil {
			return nil, err
		}
		if late == nil {
			late = time.After(2 * l.cfg.Timeout) // for the call that is under way, and the next
		}
		over := false
		select {
		case <-f.done:
		case <-late:
			over = true
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if release := l.enter(); release != nil { // of two that are ready select chooses either
			return release, nil
		}
		if over {
			l.mu.Lock()
			defer l.mu.Unlock()
			return nil, l.refuse(1)
		}
	}
}

// ask joins the next call to the store. It refuses if the answer is known, so that an
// overload does not reach the store.
func (l *Limiter) ask() (*flight, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.state
	switch {
	case l.closing:
		return nil, ErrClosed
	case l.store == nil, s.degraded, time.Now().Before(s.denied), l.capacity >= s.permits:
		return nil, l.refuse(1)
	}
	if missing := s.target - l.capacity; s.target < s.want && missing > 0 && l.pending != nil && l.pending.waiting >= missing {
		return nil, l.refuse(1) // what others give up is for the calls that wait
	}
	if l.pending == nil {
		l.pending = &flight{done: make(chan struct{})}
		l.nudge()
	}
	l.pending.waiting++
	return l.pending, nil
}

// enter takes a permit of this instance. It returns nil if there is none.
func (l *Limiter) enter() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used >= l.capacity {
		return nil
	}
	l.used++
	l.peak = max(l.peak, l.used)
	if l.state.degraded {
		l.unshared++
	}
	l.load.current().admitted++
	over := false
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if over {
			return
		}
		over = true
		if l.used--; l.used >= l.capacity {
			l.nudge() // the instance gives up what it has just got back
		}
	}
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
	Capacity  int   // that this instance serves
	InUse     int   // by operations of this instance
	Instances int   // that were seen last
	Remaining int   // about how many more operations could begin
	Degraded  bool  // whether this instance serves its share without the store
	Unshared  int64 // permits that were given out without the store since the beginning
	Rejected  int64 // since the beginning
	Calls     int64 // to the store since the beginning

	// Reset is how long a refused caller should wait.
	Reset time.Duration
}

// Stats returns the present numbers, for metrics and for answers to clients.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.state
	stats := Stats{
		Permits: s.permits, Leased: s.granted, Capacity: l.capacity, InUse: l.used, Instances: s.instances,
		Remaining: max(0, l.capacity-l.used), Degraded: s.degraded, Unshared: l.unshared,
		Rejected: l.rejected, Calls: l.calls.Load(), Reset: l.load.wait(),
	}
	if l.store != nil && !s.degraded && !l.closing {
		stats.Remaining += max(0, s.permits-s.held)
	}
	return stats
}
