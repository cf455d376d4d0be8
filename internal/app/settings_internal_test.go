package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Each setting reaches the component that it configures.
func TestSettingsReachTheirComponents(t *testing.T) {
	t.Parallel()
	n := &node{lead: new(leadership), log: slog.New(slog.DiscardHandler)}
	var err error
	n.settings, err = cluster.NewSettings(cluster.SettingsConfig{Store: cluster.Fixed{
		"permits": "8", "order-ttl": "90s", "reconciler-pace": "200ms", "log-level": "debug",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.define(Config{Permits: 64, OrderTTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := n.settings.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	permits, ttl, pace := make(chan int, 10), make(chan time.Duration, 10), make(chan time.Duration, 10)
	level := new(slog.LevelVar)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.follow(ctx, reloadable{
			permits: func(_ context.Context, n int) error { permits <- n; return nil }, permitted: func() int { return 8 }, logLevel: level,
			orderTTL: func(d time.Duration) { ttl <- d }, pace: func(d time.Duration) { pace <- d },
		})
	}()
	if p, life, every := <-permits, <-ttl, <-pace; p != 8 || life != 90*time.Second || every != 200*time.Millisecond {
		t.Errorf("permits %d, order-ttl %v, reconciler-pace %v", p, life, every)
	}
	testbedtest.Eventually(t, "the level is that", func() bool { return level.Level() == slog.LevelDebug })
	stop()
	<-ended
}
