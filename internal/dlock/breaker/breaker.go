package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/dlock"
)

const (
	// probeEvery is the time between two probes of a service that may be unavailable. Probes overlap:
	// one paused server of several delays its own probe, and the next probe may reach another server.
	probeEvery = 300 * time.Millisecond

	// probeTimeout is how long a probe may take.
	probeTimeout = 10 * time.Second

	// quickFailure is how soon a call has to fail for its error to be about its connection only. The service gets a
	// probe before calls are refused. A later failure means that the service did not respond for this long.
	quickFailure = 100 * time.Millisecond

	// maxProbes is how many probes may be in flight.
	maxProbes = 16
)

var (
	_ dlock.EachLocker    = (*Breaker)(nil)
	_ dlock.CounterRaiser = (*Breaker)(nil)
)

// Config configures a Breaker.
type Config struct {
	Name string // of the service, in errors

	// Unavailable is called when the service has become unavailable, once until it has recovered. It may be nil.
	Unavailable func(ctx context.Context, err error)

	// Recovered is called when the service answers again. It may be nil.
	Recovered func(ctx context.Context)
}

// Breaker is a [dlock.Locker] in front of a lock service.
type Breaker struct {
	dlock.Locker

	cfg     Config
	suspect chan struct{} // has a token if Run must probe

	notified bool // that the service is unavailable: of Probe, and then of Run

	mu       sync.Mutex
	answered time.Time // when a call last had an answer
	err      error     // why the service is unavailable; nil: it answers
}

// New returns a closed breaker in front of l. Run must run.
func New(l dlock.Locker, c Config) *Breaker {
	return &Breaker{Locker: l, cfg: c, suspect: make(chan struct{}, 1)}
}

// Name returns the name of the service.
func (b *Breaker) Name() string { return b.cfg.Name }

// Unavailable returns why the service is unavailable, or nil. It does not block.
func (b *Breaker) Unavailable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Acquire implements [dlock.Locker]. It fails at once while the service is unavailable.
func (b *Breaker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return b.call(ctx, key, b.Locker.Acquire)
}

// TryAcquire implements [dlock.Locker]. It fails at once while the service is unavailable.
func (b *Breaker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return b.call(ctx, key, b.Locker.TryAcquire)
}

func (b *Breaker) call(ctx context.Context, key string, acquire func(context.Context, string) (*dlock.Lease, error)) (*dlock.Lease, error) {
	if err := b.Unavailable(); err != nil {
		return nil, err
	}
	began := time.Now()
	lease, err := acquire(ctx, key)
	b.Record(ctx, began, err)
	return lease, err
}

// TryAcquireEach implements [dlock.EachLocker]. It fails at once while the service is unavailable. A service that grants
// some of keys has answered, even if it fails for others.
func (b *Breaker) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	next, ok := b.Locker.(dlock.EachLocker)
	if !ok {
		return nil, b.unsupported()
	}
	if err := b.Unavailable(); err != nil {
		return nil, err
	}
	began := time.Now()
	lease, err := next.TryAcquireEach(ctx, keys)
	if lease != nil {
		b.Record(ctx, began, nil)
	}
	b.Record(ctx, began, err)
	return lease, err
}

// RaiseCounter implements [dlock.CounterRaiser].
func (b *Breaker) RaiseCounter(ctx context.Context, key string, atLeast uint64) error {
	next, ok := b.Locker.(dlock.CounterRaiser)
	if !ok {
		return b.unsupported()
	}
	return next.RaiseCounter(ctx, key, atLeast)
}

func (b *Breaker) unsupported() error { return fmt.Errorf("%s: %w", b.cfg.Name, errors.ErrUnsupported) }

// Record records the result of a call to the service with ctx that began at that time. An error
// may mean that the wait of this caller has ended, that its connection was cut, or that the service is unavailable, so Run
// probes the service. After a quick failure the breaker stays closed unless this probe fails too.
func (b *Breaker) Record(ctx context.Context, began time.Time, err error) {
	switch {
	case err == nil, errors.Is(err, dlock.ErrHeld), errors.Is(err, dlock.ErrReentry):
		b.set(began, nil)
		return
	case ctx.Err() == nil && !errors.Is(err, dlock.ErrLost) && time.Since(began) >= quickFailure:
		b.set(began, err)
	}
	select {
	case b.suspect <- struct{}{}:
	default:
	}
}

// set opens or closes the breaker. A failed call opens it unless another call has had an answer since this one began.
func (b *Breaker) set(began time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.answered, b.err = time.Now(), nil
	case b.answered.Before(began):
		b.err = fmt.Errorf("%s is unavailable: %w", b.cfg.Name, err)
	}
}

// Probe probes the service before Run runs. If the service is unavailable, Probe
// calls Config.Unavailable, and Run waits for the service first.
func (b *Breaker) Probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := b.probe(ctx); err != nil {
		b.unavailable(ctx, err)
		b.suspect <- struct{}{}
	}
}

// probe calls the service and records whether it answered before ctx ended.
func (b *Breaker) probe(ctx context.Context) error {
	began := time.Now()
	err := try(ctx, b.Locker)
	if err == nil || ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		b.set(began, err)
	}
	return err
}

// try acquires a key that no caller uses. The first try starts the period in which new servers of Redlock grant
// nothing.
func try(ctx context.Context, l dlock.Locker) error {
	lease, err := l.TryAcquire(ctx, "start")
	if errors.Is(err, dlock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = lease.Release(ctx) // the service has granted; if the release is lost, the lease expires
	return nil
}

// Run probes the service whenever a call has failed, until ctx ends.
func (b *Breaker) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-b.suspect:
			b.wait(ctx)
		}
	}
	return nil
}

// wait probes until the service answers, or ctx ends. It notifies if the service is unavailable, unless that
// has been done, and then when it has recovered.
func (b *Breaker) wait(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var probes errgroup.Group
	probes.SetLimit(maxProbes)
	defer func() { _ = probes.Wait() }()
	defer stop()
	failed, recovered := make(chan error, maxProbes), make(chan struct{})
	answer := sync.OnceFunc(func() { close(recovered) })
	next := time.NewTicker(probeEvery)
	defer next.Stop()
	for {
		probes.TryGo(func() error {
			call, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			if err := b.probe(call); err == nil {
				answer()
			} else if ctx.Err() == nil {
				failed <- err
			}
			return nil
		})
		for waiting := true; waiting; {
			select {
			case <-recovered:
				b.recovered(ctx)
				return
			case <-ctx.Done():
				return
			case err := <-failed:
				if b.Unavailable() != nil {
					b.unavailable(ctx, err)
				}
			case <-next.C:
				waiting = false
			}
		}
	}
}

func (b *Breaker) unavailable(ctx context.Context, err error) {
	if !b.notified && b.cfg.Unavailable != nil {
		b.cfg.Unavailable(ctx, err)
	}
	b.notified = true
}

func (b *Breaker) recovered(ctx context.Context) {
	if b.notified && b.cfg.Recovered != nil {
		b.cfg.Recovered(ctx)
	}
	b.notified = false
}
