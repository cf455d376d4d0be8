package cluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest/memcluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

// flaky is a locker that fails a few times.
type flaky struct {
	dlock.Locker
	failures []error
}

// Acquire implements [dlock.Locker].
func (f *flaky) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if len(f.failures) > 0 {
		err := f.failures[0]
		f.failures = f.failures[1:]
		return nil, err
	}
	return f.Locker.Acquire(ctx, key)
}

func election(t *testing.T, cfg cluster.ElectionConfig) *cluster.Election {
	t.Helper()
	if cfg.Registry == nil {
		cfg.Registry = &memcluster.Cluster{}
	}
	cfg.Name = "a"
	e, err := cluster.NewElection(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestElectionConfigIsChecked(t *testing.T) {
	t.Parallel()
	locker, registry := memlock.New(memlock.Config{}), &memcluster.Cluster{}
	for _, cfg := range []cluster.ElectionConfig{
		{}, {Locker: locker, Registry: registry}, {Locker: locker, Name: "a"}, {Registry: registry, Name: "a"}, {Locker: locker, Registry: registry, Name: "a\n"},
	} {
		if _, err := cluster.NewElection(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// TestCampaignGoesOn when the lock service fails, until its context ends.
func TestCampaignGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reported := 0
		l := &flaky{memlock.New(memlock.Config{}), []error{errAway, dlock.ErrUncertain, errAway}}
		e := election(t, cluster.ElectionConfig{Locker: l, OnError: func(error) { reported++ }})
		term, err := e.Campaign(t.Context())
		if err != nil || reported != 3 {
			t.Fatalf("Campaign = %v, reported %d times", err, reported)
		}
		l.failures = make([]error, 1000)
		for i := range l.failures {
			l.failures[i] = errAway
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := e.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Campaign = %v", err)
		}
		if n := 1000 - len(l.failures); n < 50 || n > 300 {
			t.Errorf("%d attempts in a minute", n)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestReentry: a leader that campaigns for its own election gets an error, and does not wait
// for itself.
func TestReentry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := election(t, cluster.ElectionConfig{Locker: memlock.New(memlock.Config{NoReentry: true})})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := e.Lead(ctx, func(ctx context.Context, _ *cluster.Term) error {
			defer cancel()
			if _, err := e.Campaign(ctx); !errors.Is(err, dlock.ErrReentry) {
				t.Errorf("Campaign = %v", err)
			}
			if err := e.Lead(ctx, nil); !errors.Is(err, dlock.ErrReentry) {
				t.Errorf("Lead = %v", err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("Lead = %v", err)
		}
	})
}

// TestAnnouncementEndsWithTheTerm however that ends, and before Resign returns.
func TestAnnouncementEndsWithTheTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locker, registry := memlock.New(memlock.Config{TTL: time.Second}), &memcluster.Cluster{}
		e := election(t, cluster.ElectionConfig{Locker: locker, Registry: registry})
		leads := func() bool {
			for l := range registry.Leaders(t.Context(), "leader") {
				return l.Elected()
			}
			return false
		}
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); !leads() {
			t.Error("no announcement")
		}
		if err := term.Resign(t.Context()); err != nil || leads() {
			t.Errorf("Resign = %v, and the announcement is there: %v", err, leads())
		}
		if term, err = e.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		locker.Expire("election:leader")
		<-term.Done()
		if synctest.Wait(); leads() || !errors.Is(term.Err(), dlock.ErrLost) {
			t.Errorf("lost by %v, and the announcement is there: %v", term.Err(), leads())
		}
		if err := term.Resign(t.Context()); !errors.Is(err, dlock.ErrLost) {
			t.Errorf("Resign = %v", err)
		}
	})
}

// TestLeadPauses after work that ends by itself, also if nobody else wants to lead.
func TestLeadPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := election(t, cluster.ElectionConfig{Locker: memlock.New(memlock.Config{})})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Millisecond)
		defer cancel()
		turns := 0
		err := e.Lead(ctx, func(context.Context, *cluster.Term) error {
			turns++
			return nil
		})
		if err != nil || turns != 61 {
			t.Errorf("Lead = %v, after %d turns in a minute", err, turns)
		}
	})
}

// TestLeadResignsAfterAPanic so that others can lead.
func TestLeadResignsAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := election(t, cluster.ElectionConfig{Locker: memlock.New(memlock.Config{})})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			_ = e.Lead(t.Context(), func(context.Context, *cluster.Term) error { panic("work") })
		}()
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
