package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// ledger is a store in which attempts are found from a moment on.
type ledger struct {
	mu          sync.Mutex
	unavailable bool
	taken       map[string]time.Time // by owner: when it gets there
	asked       map[string]int
}

func newLedger() *ledger { return &ledger{taken: map[string]time.Time{}, asked: map[string]int{}} }

func (l *ledger) revert(ctx context.Context, h dlock.Held) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if l.unavailable {
		return false, errors.New("unavailable")
	}
	l.asked[h.Fence.Owner]++
	at, ok := l.taken[h.Fence.Owner]
	if !ok || time.Now().Before(at) {
		return false, nil
	}
	delete(l.taken, h.Fence.Owner)
	return true, nil
}

func (l *ledger) set(unavailable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unavailable = unavailable
}

func (l *ledger) take(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken[owner] = time.Now()
}

func (l *ledger) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.taken)
}

func doubtful(owner string) dlock.Held {
	return dlock.Held{Key: "k", Fence: dlock.Fence{Owner: owner}}
}

func TestRollbackRepeatsACallThatFoundNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		u := driver.NewRollback(driver.RollbackConfig{TTL: 10 * time.Second, Pause: time.Second, Revert: l.revert})
		if err := u.Close(t.Context()); err != nil {
			t.Errorf("Close = %v with nothing to wait for", err)
		}
		l.taken["now"] = time.Now()
		l.taken["soon"] = time.Now().Add(3 * time.Second / 2) // it is on its way when the store is first asked
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		l.set(true)
		for _, owner := range []string{"now", "soon", "never"} {
			u.Add(ended, doubtful(owner))
		}
		synctest.Wait()
		l.set(false) // the store is asked for all of them together, a second from now
		if err := u.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if len(l.taken) > 0 {
			t.Errorf("left behind: %v", l.taken)
		}
		if l.asked["now"] != 1 || l.asked["soon"] != 2 || l.asked["never"] != 2 {
			t.Errorf("asked for %v", l.asked)
		}
	})
}

func TestRollbackOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		u := driver.NewRollback(driver.RollbackConfig{TTL: 10 * time.Second, Pause: time.Second, Revert: l.revert})
		l.set(true)
		for i := range 250 {
			owner := fmt.Sprint(i)
			l.taken[owner] = time.Now()
			u.Add(t.Context(), doubtful(owner))
		}
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := u.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v while the store is unavailable, want the end of the context", err)
		}
		l.set(false)
		if err := u.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if len(l.taken) > 0 {
			t.Errorf("%d left behind", len(l.taken))
		}
		for owner, n := range l.asked {
			if n != 1 {
				t.Fatalf("asked for %s %d times", owner, n)
			}
		}
	})
}

// A paused store executes what it was sent when it resumes. Then it has a call for each attempt, or gets it at once.
func TestRollbackOutlastsAPauseBeyondTheTTL(t *testing.T) {
	for _, paused := range []time.Duration{25 * time.Second, 48*time.Second + 500*time.Millisecond, 99 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, resumed := newLedger(), make(chan struct{})
			u := driver.NewRollback(driver.RollbackConfig{
				TTL: 10 * time.Second, Pause: time.Second, Timeout: 4 * time.Second,
				Revert: func(ctx context.Context, h dlock.Held) (bool, error) {
					select {
					case <-resumed:
					case <-ctx.Done():
					}
					return l.revert(ctx, h)
				},
			})
			for i := range 250 {
				owner := fmt.Sprint(i)
				l.take(owner)
				u.Add(t.Context(), doubtful(owner))
			}
			time.Sleep(paused)
			close(resumed)
			synctest.Wait()
			if n := l.left(); n > 0 {
				t.Errorf("%d left behind after a pause of %v", n, paused)
			}
		})
	}
}

// A store that is gone costs no calls for ever, and Close only a TTL.
func TestRollbackGivesUp(t *testing.T) {
	for closed, ended := range map[time.Duration]time.Duration{0: 10 * time.Second, 50 * time.Second: time.Minute, 95 * time.Second: 100 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			u := driver.NewRollback(driver.RollbackConfig{TTL: 10 * time.Second, Pause: time.Second, Revert: l.revert})
			l.set(true)
			start := time.Now()
			u.Add(t.Context(), doubtful("a"))
			time.Sleep(closed)
			if err := u.Close(t.Context()); err != nil {
				t.Errorf("Close = %v", err)
			}
			if d := time.Since(start); d != ended {
				t.Errorf("tried for %v, want %v", d, ended)
			}
		})
	}
}

// Attempts whose calls fail or hang, more than may be repeated at once, delay no attempt that comes later.
func TestRollbackIsNotDelayedByOtherCalls(t *testing.T) {
	const pause, timeout = time.Second, 10 * time.Second
	for name, poison := range map[string]func(ctx context.Context) error{
		"fails": func(context.Context) error { return errors.New("refused") },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger()
			u := driver.NewRollback(driver.RollbackConfig{
				TTL: 10 * time.Minute, Pause: pause, Timeout: timeout,
				Revert: func(ctx context.Context, h dlock.Held) (bool, error) {
					if strings.HasPrefix(h.Fence.Owner, "poison") {
						return false, poison(ctx)
					}
					return l.revert(ctx, h)
				},
			})
			l.set(true)
			for i := range 60 {
				owner := fmt.Sprint(i)
				l.take(owner)
				u.Add(t.Context(), doubtful(owner))
				u.Add(t.Context(), doubtful("poison"+owner))
			}
			synctest.Wait()
			l.set(false)
			time.Sleep(4*pause + timeout)
			before := l.left()
			l.take("late")
			u.Add(t.Context(), doubtful("late"))
			synctest.Wait()
			if l.left() > before {
				t.Errorf("%s: one that came later waits for it", name)
			}
			time.Sleep(8*pause + 2*timeout)
			if n := l.left(); n > 0 {
				t.Errorf("%s: %d wait for it", name, n)
			}
			if err := u.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
