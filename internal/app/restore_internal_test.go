package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cluster"
)

// If the store has lost the number of permits, or has another one, the leader writes the setting again. No other
// instance does. Without a setting, the leader does not either.
func TestLostPermitsAreSetAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := make(entries)
		settings, err := cluster.NewSettings(cluster.SettingsConfig{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		n := &node{lead: new(leadership), settings: settings, log: slog.New(slog.DiscardHandler)}
		if err := n.define(Config{Permits: 64, OrderTTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		t.Cleanup(stop)
		go func() {
			if err := settings.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		var number atomic.Int64
		go n.keepPermits(ctx, reloadable{
			permits:   func(_ context.Context, n int) error { number.Store(int64(n)); return nil },
			permitted: func() int { return int(number.Load()) },
		})
		becomes := func(what string, had, want int64) {
			t.Helper()
			synctest.Wait() // or what was read before would count
			number.Store(had)
			time.Sleep(2 * keepEvery)
			if got := number.Load(); got != want {
				t.Errorf("%s: %d permits, want %d", what, got, want)
			}
		}
		store <- map[string]cluster.Entry{"permits": {Text: "8", Version: 1}}
		becomes("nobody leads", 64, 64)
		leads(t, n.lead)
		becomes("the store has lost the number", 64, 8)
		becomes("again", 65, 8)
		if c := n.withClusterSettings(Config{Permits: 64, OrderTTL: time.Minute}); c.Permits != 8 || c.OrderTTL != time.Minute {
			t.Errorf("begins with %d permits and orders of %v", c.Permits, c.OrderTTL)
		}
		store <- map[string]cluster.Entry{}
		becomes("it is set no more", 50, 50)
	})
}
