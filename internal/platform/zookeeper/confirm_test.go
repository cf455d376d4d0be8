package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A leader that has lost its followers continues to answer for a while. These answers confirm no session: there may be
// another leader, which ends it.
func TestOnlyAMajorityConfirms(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		servers := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
		leader, err := servers.Leader(t.Context())
		check(t, err)
		s := connect(t, leader.Addr())
		check(t, s.Confirm(t.Context()))
		for _, node := range servers.Nodes() {
			if node != leader {
				check(t, node.Pause())
			}
		}
		paused, answered := time.Now(), false
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), timeout/20)
			answered = s.Sync(ctx) == nil || answered
			if err := s.Confirm(ctx); err == nil {
				t.Error("Confirm without a majority: no error")
			} else if !errors.Is(err, context.DeadlineExceeded) {
				t.Logf("Confirm without a majority: %v", err)
			}
			cancel()
		}
		if d := s.Confirmed().Sub(paused); d > 0 {
			t.Errorf("the session was confirmed %v after the majority had gone", d)
		}
		if !answered {
			t.Error("the leader has answered nothing, so the test proves nothing")
		}
		for _, node := range servers.Nodes() {
			if node != leader {
				check(t, node.Resume())
			}
		}
	})
}
