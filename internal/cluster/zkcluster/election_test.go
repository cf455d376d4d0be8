package zkcluster_test

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/zkcluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestCampaignGoesOn when the lock service fails, until its context ends.
func TestCampaignGoesOn(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		var reported atomic.Int32
		s, away := session(t, testbedtest.ZooKeeper(t)), errors.New("away")
		failures := []error{away, dlock.ErrUncertain, away}
		l := &dlocktest.Faulty{Locker: locker(t, s), Fail: func() (err error) {
			if len(failures) > 0 {
				err, failures = failures[0], failures[1:]
			}
			return err
		}}
		group := rand.Text()
		e, err := zkcluster.NewElection(store(t, s, group, func(error) { reported.Add(1) }), l, group, "a")
		check(t, err)
		term := clustertest.Campaign(t, e)
		if reported.Load() != 3 {
			t.Errorf("reported %d times", reported.Load())
		}
		failures = []error{away, away, away, away, away, away, away, away, away, away, away, away, away, away, away, away}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := e.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Campaign = %v", err)
		}
		if len(failures) < 5 {
			t.Errorf("%d attempts are left", len(failures))
		}
		check(t, term.Resign(t.Context()))
	})
}

func TestElectionIsChecked(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := session(t, testbedtest.ZooKeeper(t))
		c, l := store(t, s, rand.Text(), func(error) {}), locker(t, s)
		if _, err := zkcluster.NewElection(c, nil, "k", "a"); err == nil {
			t.Error("no locker is accepted")
		}
		for _, bad := range [][2]string{{"", "a"}, {"k", ""}, {"k", "a\n"}} {
			if _, err := zkcluster.NewElection(c, l, bad[0], bad[1]); err == nil {
				t.Errorf("%q is accepted", bad)
			}
		}
	})
}

// TestLateAnnouncementIsIgnored posts the announcement of a term that is over, as a former leader does
// that has not noticed.
func TestLateAnnouncementIsIgnored(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, lateAnnouncementIsIgnored)
}

func lateAnnouncementIsIgnored(t testing.TB) {
	addr, group := testbedtest.ZooKeeper(t), rand.Text()
	here, there := store(t, session(t, addr), group, func(error) {}), store(t, session(t, addr), group, func(error) {})
	seen := clustertest.Follow(t, func(ctx context.Context) iter.Seq2[cluster.Leader, error] { return there.Leaders(ctx, group) })
	post := func(i *zkcluster.Cluster, l cluster.Leader) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var posting sync.WaitGroup
		posting.Go(func() {
			if err := i.Announce(ctx, group, l); err != nil {
				t.Error(err)
			}
		})
		return func() {
			cancel()
			posting.Wait()
		}
	}
	// Tokens that have the same value as floating point numbers.
	current := cluster.Leader{Name: "a", Fence: dlock.Fence{Token: 1<<63 + 2, Owner: "x"}, Since: time.Now()}
	former := cluster.Leader{Name: "b", Fence: dlock.Fence{Token: 1<<63 + 1, Owner: "y"}, Since: time.Now()}
	ancient := cluster.Leader{Name: "c", Fence: dlock.Fence{Token: 99, Owner: "z"}, Since: time.Now()}
	forget := post(here, ancient)
	defer forget()
	seen.Until(t, "the first leader", clustertest.Leads(ancient))
	takeDown := post(here, current)
	seen.Until(t, "the leader", clustertest.Leads(current))
	for _, l := range []cluster.Leader{former, {Name: "d", Fence: dlock.Fence{Token: 98, Owner: "w"}, Since: time.Now()}} {
		stop := post(there, l)
		time.Sleep(ttl / 2) // in which a reading may come
		if l, _, err := seen.Now(); err == nil && !l.Equal(current) {
			t.Errorf("%+v is reported as leader", l)
		}
		stop()
	}
	seen.Until(t, "still the leader", clustertest.Leads(current))
	forget()
	takeDown()
	seen.Until(t, "nobody", clustertest.Leads(cluster.Leader{}))
}

// TestAnnouncementEndsWithItsContext ends terms at the moment at which they are posted.
func TestAnnouncementEndsWithItsContext(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		group := rand.Text()
		i := store(t, session(t, testbedtest.ZooKeeper(t)), group, func(error) {})
		for k := range 50 {
			l := cluster.Leader{Name: "a", Fence: dlock.Fence{Token: uint64(k + 1), Owner: "x"}, Since: time.Now()}
			ctx, cancel := context.WithTimeout(t.Context(), mathrand.N(3*time.Millisecond))
			err := i.Announce(ctx, group, l)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			for seen, err := range i.Leaders(t.Context(), group) {
				if err != nil {
					continue
				}
				if seen.Elected() {
					t.Fatalf("%+v after the end of its announcement, the %dth", seen, k+1)
				}
				break
			}
		}
	})
}
