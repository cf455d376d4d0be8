package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cluster"
)

// fakePlace is a place with a scripted store.
type fakePlace struct {
	mu      sync.Mutex
	calls   []string
	outcome []error // of the next calls of Take; nil when there are no more
	lost    chan struct{}
	drop    error
}

func (p *fakePlace) call(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, name)
}

func (p *fakePlace) called() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Take implements [cluster.Place].
func (p *fakePlace) Take(_ context.Context, again bool) error {
	p.call(map[bool]string{false: "take", true: "take again"}[again])
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.outcome) == 0 {
		return nil
	}
	err := p.outcome[0]
	p.outcome = p.outcome[1:]
	return err
}

// Keep implements [cluster.Place].
func (p *fakePlace) Keep(ctx context.Context) error {
	p.call("keep")
	select {
	case <-p.lost:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drop implements [cluster.Place].
func (p *fakePlace) Drop(ctx context.Context) error {
	p.call("drop")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.drop
}

func TestPresence(t *testing.T) {
	t.Parallel()
	taken := &cluster.NameTakenError{Holder: cluster.Member{Name: "a", Address: "there"}}
	for name, tt := range map[string]struct {
		outcome  []error
		losses   int
		drop     error
		end      error // of the presence
		leave    error
		calls    []string
		reported int
	}{
		"stays": {nil, 0, nil, nil, nil, []string{"take", "keep", "drop"}, 0},
		"comes back": {
			nil, 2, nil, nil, nil,
			[]string{"take", "keep", "take again", "keep", "take again", "keep", "drop"},
			0,
		},
		"tries again": {
			[]error{errAway, errAway, nil, errAway},
			1, nil, nil, nil,
			[]string{"take", "take", "take", "keep", "take again", "take again", "keep", "drop"},
			3,
		},
		"is replaced": {
			[]error{nil, cluster.ErrReplaced},
			1, nil, cluster.ErrReplaced, cluster.ErrReplaced,
			[]string{"take", "keep", "take again"},
			0,
		},
		"loses its name": {
			[]error{nil, errAway, taken},
			1, nil, taken, taken,
			[]string{"take", "keep", "take again", "take again"},
			1,
		},
		"cannot say goodbye": {nil, 0, errAway, nil, errAway, []string{"take", "keep", "drop"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &fakePlace{outcome: tt.outcome, lost: make(chan struct{}), drop: tt.drop}
				reported := 0
				ctx, cancel := context.WithCancel(t.Context())
				presence, err := cluster.Enter(ctx, cluster.Member{Name: "a"}, cluster.PresenceConfig{
					Place: p, Limit: time.Second, OnError: func(error) { reported++ },
				})
				if err != nil {
					t.Fatal(err)
				}
				cancel() // the presence outlives it
				for range tt.losses {
					p.lost <- struct{}{}
					wait(time.Minute)
				}
				if err := presence.Err(); !errors.Is(err, tt.end) {
					t.Errorf("Err = %v", err)
				}
				if err := presence.Leave(ctx); !errors.Is(err, tt.leave) {
					t.Errorf("Leave = %v", err)
				}
				<-presence.Done()
				if !slices.Equal(p.called(), tt.calls) || reported != tt.reported {
					t.Errorf("called %q, reported %d times", p.called(), reported)
				}
			})
		})
	}
}

// TestEnterFails and leaves nothing, whatever the attempt may have done.
func TestEnterFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &fakePlace{outcome: slices.Repeat([]error{errAway}, 1000)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := cluster.Enter(ctx, cluster.Member{Name: "a"}, cluster.PresenceConfig{Place: p, Limit: time.Second})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errAway) {
			t.Errorf("Enter = %v", err)
		}
		calls := p.called()
		if n := len(calls); calls[n-1] != "drop" || n < 60 || n > 200 {
			t.Errorf("called %d times in a minute, and then %s", n, calls[n-1])
		}
		p = &fakePlace{outcome: []error{&cluster.NameTakenError{}}}
		if _, err := cluster.Enter(t.Context(), cluster.Member{Name: "a"}, cluster.PresenceConfig{Place: p, Limit: time.Second}); !errors.Is(err, cluster.ErrNameTaken) {
			t.Errorf("Enter = %v", err)
		}
	})
}

// TestLeaveWhileComingBack ends attempts to come back.
func TestLeaveWhileComingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &fakePlace{lost: make(chan struct{})}
		presence, err := cluster.Enter(t.Context(), cluster.Member{Name: "a"}, cluster.PresenceConfig{Place: p, Limit: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		p.outcome = slices.Repeat([]error{errAway}, 1000)
		p.mu.Unlock()
		p.lost <- struct{}{}
		wait(10 * time.Second)
		start := time.Now()
		if err := presence.Leave(t.Context()); err != nil || time.Since(start) > time.Second {
			t.Errorf("Leave = %v after %v", err, time.Since(start))
		}
		if !errors.Is(presence.Err(), cluster.ErrLeft) {
			t.Errorf("Err = %v", presence.Err())
		}
		if err := presence.Leave(t.Context()); err != nil {
			t.Errorf("Leave again = %v", err)
		}
	})
}
