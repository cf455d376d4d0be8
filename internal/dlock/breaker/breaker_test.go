package breaker_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/breaker"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
)

var errDown = errors.New("connection refused")

// service is a lock service that fails as the test wants.
type service struct {
	*dlocktest.Faulty

	fails atomic.Pointer[error] // of every call; nil: none
}

func newService() *service {
	s := new(service)
	s.Faulty = &dlocktest.Faulty{Locker: memlock.New(memlock.Config{}), Fail: func() error {
		if err := s.fails.Load(); err != nil {
			return *err
		}
		return nil
	}}
	return s
}

func (s *service) fail(err error) { s.fails.Store(&err) }

func (s *service) recover() { s.fails.Store(nil) }

// start returns a breaker that runs until the test ends, and counts its notifications.
func start(t *testing.T, s *service, probeFirst bool) (b *breaker.Breaker, unavailable, recovered *atomic.Int64) {
	t.Helper()
	unavailable, recovered = new(atomic.Int64), new(atomic.Int64)
	b = breaker.New(s, breaker.Config{
		Name:        "test",
		Unavailable: func(context.Context, error) { unavailable.Add(1) },
		Recovered:   func(context.Context) { recovered.Add(1) },
	})
	if probeFirst {
		b.Probe(t.Context())
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b, unavailable, recovered
}

// TestUnavailableServiceFailsAtOnce: after one failed call, only probes reach the service, and it is reported once.
// Calls reach it again as soon as it answers.
func TestUnavailableServiceFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		b, unavailable, recovered := start(t, s, false)
		s.fail(errDown)
		if _, err := b.Acquire(t.Context(), "a"); !errors.Is(err, errDown) {
			t.Errorf("the call that fails: %v", err)
		}
		synctest.Wait()
		before := s.Calls.Load()
		for range 10 {
			if _, err := b.TryAcquire(t.Context(), "a"); !errors.Is(err, errDown) {
				t.Errorf("a call to an unavailable service: %v", err)
			}
		}
		if now := s.Calls.Load(); now != before {
			t.Errorf("%d calls have reached an unavailable service", now-before)
		}
		time.Sleep(time.Second)
		if s.Calls.Load() == before {
			t.Error("nobody probes")
		}
		s.recover()
		time.Sleep(time.Second)
		if err := b.Unavailable(); err != nil {
			t.Errorf("the service answers again: %v", err)
		}
		lease, err := b.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if unavailable.Load() != 1 || recovered.Load() != 1 {
			t.Errorf("notified %d and %d times, want once each", unavailable.Load(), recovered.Load())
		}
	})
}

// TestServiceThatStillAnswersIsAvailable: a failed call proves nothing if another call was answered since it began.
// Nor does it if its own context ended, or if it lost its lease.
func TestServiceThatStillAnswersIsAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, unavailable, _ := start(t, newService(), false)
		began := time.Now()
		time.Sleep(time.Second)
		b.Record(t.Context(), time.Now(), dlock.ErrHeld) // is an answer
		b.Record(t.Context(), began, errDown)
		if err := b.Unavailable(); err != nil { // before the probe
			t.Errorf("another call was answered: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(time.Millisecond)
		b.Record(gone, time.Now(), context.Canceled)
		b.Record(t.Context(), time.Now(), dlock.ErrLost)
		if err := b.Unavailable(); err != nil {
			t.Errorf("the service answers: %v", err)
		}
		time.Sleep(time.Second)
		if unavailable.Load() != 0 {
			t.Errorf("notified %d times", unavailable.Load())
		}
	})
}

// TestOneCutConnectionRefusesNoOtherCall: a call fails at once, and the service answers the probe that follows. A call
// that has failed after a second opens the breaker before a probe.
func TestOneCutConnectionRefusesNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		b, unavailable, _ := start(t, s, false)
		probes := s.Calls.Load()
		b.Record(t.Context(), time.Now(), io.EOF)
		if err := b.Unavailable(); err != nil {
			t.Errorf("after one cut connection: %v", err)
		}
		synctest.Wait()
		if err := b.Unavailable(); err != nil || unavailable.Load() != 0 || s.Calls.Load() == probes {
			t.Errorf("after the probe: %v, notified %d times, %d probes", err, unavailable.Load(), s.Calls.Load()-probes)
		}
		idle := breaker.New(s, breaker.Config{Name: "test"}) // it does not run, so no probe comes in between
		idle.Record(t.Context(), time.Now(), nil)
		time.Sleep(time.Millisecond) // the answer is older than the call
		began := time.Now()
		time.Sleep(time.Second)
		idle.Record(t.Context(), began, errDown)
		if err := idle.Unavailable(); !errors.Is(err, errDown) {
			t.Errorf("after a call that failed late: %v", err)
		}
	})
}

// TestServiceUnavailableAtTheStartRecovers: a service that does not answer at the start is notified of once, and
// recovers.
func TestServiceUnavailableAtTheStartRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.fail(errDown)
		b, unavailable, recovered := start(t, s, true)
		if err := b.Unavailable(); !errors.Is(err, errDown) {
			t.Errorf("after the first probe: %v", err)
		}
		time.Sleep(5 * time.Second)
		s.recover()
		time.Sleep(time.Second)
		if err := b.Unavailable(); err != nil || unavailable.Load() != 1 || recovered.Load() != 1 {
			t.Errorf("%v, notified %d and %d times, want once each", err, unavailable.Load(), recovered.Load())
		}
	})
}

// TestRaiseCounterIsUnsupportedWithoutCounterRaiser is refused.
func TestRaiseCounterIsUnsupportedWithoutCounterRaiser(t *testing.T) {
	t.Parallel()
	b := breaker.New(newService(), breaker.Config{Name: "test"})
	if err := b.RaiseCounter(t.Context(), "a", 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// several is a service that takes several keys.
type several struct{ *service }

func (s several) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	s.Calls.Add(1)
	lease, err := s.Locker.(dlock.EachLocker).TryAcquireEach(ctx, keys)
	if failed := s.fails.Load(); failed != nil {
		time.Sleep(time.Minute) // a failure that is no refusal of one connection
		return lease, *failed
	}
	return lease, err
}

// TestTryAcquireEachIsRecorded: a failed call for several keys opens the breaker, unless some key was granted. Then
// calls fail at once.
func TestTryAcquireEachIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := several{newService()}
		b := breaker.New(s, breaker.Config{Name: "test"})
		s.fail(errDown)
		lease, err := b.TryAcquireEach(t.Context(), []string{"a"})
		if lease == nil || !errors.Is(err, errDown) || b.Unavailable() != nil {
			t.Errorf("%v, %v: a service that grants a key is unavailable: %v", lease, err, b.Unavailable())
		}
		time.Sleep(time.Second)
		if none, err := b.TryAcquireEach(t.Context(), []string{"a"}); none != nil || !errors.Is(err, errDown) || b.Unavailable() == nil {
			t.Errorf("%v, %v: a service that fails is available", none, err)
		}
		before := s.Calls.Load()
		if _, err := b.TryAcquireEach(t.Context(), []string{"b"}); !errors.Is(err, errDown) || s.Calls.Load() != before {
			t.Errorf("error = %v after %d calls, want none", err, s.Calls.Load()-before)
		}
		lease.Release(t.Context())
	})
}

// TestTryAcquireEachIsUnsupportedWithoutEachLocker: the service is not asked.
func TestTryAcquireEachIsUnsupportedWithoutEachLocker(t *testing.T) {
	t.Parallel()
	s := newService()
	lease, err := breaker.New(s, breaker.Config{Name: "test"}).TryAcquireEach(t.Context(), []string{"a"})
	if lease != nil || !errors.Is(err, errors.ErrUnsupported) || s.Calls.Load() != 0 {
		t.Errorf("%v, %v after %d calls", lease, err, s.Calls.Load())
	}
}
