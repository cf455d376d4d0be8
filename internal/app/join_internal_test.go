package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest/memcluster"
)

// Two instances with one name and one address do not take turns. The later instance is the member, and the earlier
// one joins again after it has left.
func TestReplacedInstanceWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		members := new(memcluster.Cluster)
		changes := make(chan cluster.View, 100)
		begin := func(role string) (stop func()) {
			n := &node{
				membership: members, log: slog.New(slog.DiscardHandler), stale: make(map[string]error),
				self: cluster.Member{Name: "shop-1", Address: "shop:8080", Role: role, Started: time.Now()},
			}
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			go n.join(ctx)
			go func() {
				for view := range n.membership.Members(ctx) {
					n.know("members", nil, func() { n.view = view })
				}
			}()
			synctest.Wait()
			return cancel
		}
		go func() {
			for view := range members.Members(t.Context()) {
				changes <- view
			}
		}()
		roles := func() (all []string) {
			for {
				synctest.Wait()
				select {
				case view := <-changes:
					for _, m := range view.Members {
						all = append(all, m.Role)
					}
				default:
					return all
				}
			}
		}
		begin("first")
		time.Sleep(joinPause)
		stop := begin("second")
		time.Sleep(10 * joinPause)
		if got := roles(); len(got) != 2 || got[0] != "first" || got[1] != "second" {
			t.Errorf("members one after the other: %v", got)
		}
		stop()
		time.Sleep(2 * joinPause)
		if got := roles(); len(got) != 1 || got[0] != "first" {
			t.Errorf("members after the second one has gone: %v", got)
		}
	})
}

// An error that repeats is reported once in ten seconds, whatever is reported in between.
func TestRepeatedErrorIsReportedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		report := seldom(func(err error) { reported = append(reported, err.Error()) })
		for range 2 * int(warnEvery/time.Second) {
			report(errors.New("member"))
			report(errors.New("leader"))
			time.Sleep(time.Second)
		}
		if want := []string{"member", "leader", "member", "leader"}; !slices.Equal(reported, want) {
			t.Errorf("reported %v in 20 s, want %v", reported, want)
		}
	})
}
