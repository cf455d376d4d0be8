package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
)

func newTimers(tb testing.TB, tel *telemetry.Telemetry, c telemetry.TimersConfig) *telemetry.Timers {
	tb.Helper()
	o, err := telemetry.NewTimers(tb.Context(), tel.MeterProvider, c)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func TestTimerCountersShowEachOperation(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	o := newTimers(t, tel, telemetry.TimersConfig{})
	o.Scheduled("k", 3)
	o.EntriesDropped("k", 2)
	o.Woken("k", timeout.WokenPoll)
	o.Woken("k", "unheard of")
	o.Claimed("k", 0)
	o.Claimed("k", 5)
	o.Fired("k", 700*time.Microsecond, timeout.Fired{ID: "secret"})
	o.Fired("k", 59*time.Minute, timeout.Fired{ID: "secret"})
	o.Handled("k", 2, time.Millisecond, nil)
	o.Handled("k", 2, time.Millisecond, errors.New("x"))
	o.Settled("k", timeout.VerdictCommitted, 4)
	o.Settled("k", timeout.VerdictDead, 1)
	o.Nacked("k", 6)
	o.Repaired("k", timeout.RepairOverdue, 7)
	o.Offset("k", -1500*time.Millisecond)
	o.Failed("", "beat", errors.New("x"))
	o.Failed("k", "claim", errors.New("x"))
	got := scrape(t, tel)
	expect(t, got, map[string]string{
		`shop_timers_scheduled_total{kind="k",role="base"}`:                               "3",
		`shop_timers_index_entries_dropped_total{kind="k",role="base"}`:                   "2",
		`shop_timers_wakeups_total{by="poll",kind="k",role="base"}`:                       "1",
		`shop_timers_wakeups_total{by="timer",kind="k",role="base"}`:                      "0",
		`shop_timers_claims_total{kind="k",result="empty",role="base"}`:                   "1",
		`shop_timers_claims_total{kind="k",result="timers",role="base"}`:                  "1",
		`shop_timers_claimed_total{kind="k",role="base"}`:                                 "5",
		`shop_timers_firing_delay_seconds_bucket{kind="k",role="base",le="0.001"}`:        "1",
		`shop_timers_firing_delay_seconds_bucket{kind="k",role="base",le="900"}`:          "1",
		`shop_timers_firing_delay_seconds_bucket{kind="k",role="base",le="3600"}`:         "2",
		`shop_timers_handler_duration_seconds_count{kind="k",result="ok",role="base"}`:    "1",
		`shop_timers_handler_duration_seconds_count{kind="k",result="error",role="base"}`: "1",
		`shop_timers_outcomes_total{kind="k",outcome="committed",role="base"}`:            "4",
		`shop_timers_outcomes_total{kind="k",outcome="dead",role="base"}`:                 "1",
		`shop_timers_outcomes_total{kind="k",outcome="retry",role="base"}`:                "0",
		`shop_timers_nacked_total{kind="k",role="base"}`:                                  "6",
		`shop_timers_repairs_total{kind="k",reason="overdue",role="base"}`:                "7",
		`shop_timers_index_clock_offset_seconds{kind="k",role="base"}`:                    "-1.5",
		`shop_timers_failures_total{during="beat",role="base"}`:                           "1",
		`shop_timers_failures_total{during="claim",kind="k",role="base"}`:                 "1",
		`shop_timers_failures_total{during="load",kind="k",role="base"}`:                  "0",
	})
	for name := range got {
		if strings.Contains(name, "secret") {
			t.Errorf("a label shows an id: %s", name)
		}
	}
}

func TestKindsBeyondTheLimitShareOneLabel(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	o := newTimers(t, tel, telemetry.TimersConfig{Canary: true})
	for i := range 1000 {
		o.Scheduled("kind-"+strings.Repeat("x", i), 1)
	}
	got, n := scrape(t, tel), 0
	for name := range got {
		if strings.HasPrefix(name, "shop_timers_scheduled_total{") {
			n++
		}
	}
	if n != 33 {
		t.Errorf("%d kinds, want 32 and others", n)
	}
	expect(t, got, map[string]string{
		`shop_timers_scheduled_total{kind="kind-",role="canary"}`: "1",
		`shop_timers_scheduled_total{kind="other",role="canary"}`: "968",
	})
}

func TestRepeatedTimerFailureIsLoggedEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := newTimers(t, setup(t, telemetry.Config{}), telemetry.TimersConfig{Logger: telemetry.NewLogger(&log, slog.LevelInfo)})
		for range 100 {
			o.Failed("k", "claim", errors.New("redis is unavailable"))
			o.Failed("k", "load", errors.New("the database is unavailable"))
			time.Sleep(time.Second)
		}
		o.Settled("k", timeout.VerdictDead, 3)
		if n := strings.Count(log.String(), "redis is unavailable"); n != 10 {
			t.Errorf("%d lines in 100 s, want 10", n)
		}
		if !strings.Contains(log.String(), `"level":"ERROR","msg":"timers are dead`) {
			t.Error("dead timers are not logged")
		}
	})
}

func TestTimerGaugesAreAbsentWhileTheCountFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		calls := 0
		err := telemetry.WatchTimers(tel.MeterProvider, func(ctx context.Context) ([]timeout.Stats, error) {
			if calls++; calls == 2 {
				<-ctx.Done()
				return []timeout.Stats{{Kind: "k"}}, ctx.Err()
			}
			return []timeout.Stats{
				{Kind: "k", Partition: "base", Open: 5, Dead: 2, Pending: 4, Overdue: 1500 * time.Millisecond, Paused: true},
				{Kind: "k", Partition: "canary-1", Open: 1, Overdue: 1500 * time.Millisecond, Paused: true, Unindexed: true},
			}, nil
		}, telemetry.WatchTimersConfig{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			`shop_timers_open{kind="k",partition="base",role="base"}`:        "5",
			`shop_timers_dead{kind="k",partition="base",role="base"}`:        "2",
			`shop_timers_pending{kind="k",partition="base",role="base"}`:     "4",
			`shop_timers_open{kind="k",partition="canary-1",role="base"}`:    "1",
			`shop_timers_pending{kind="k",partition="canary-1",role="base"}`: "",
			`shop_timers_due_lag_seconds{kind="k",role="base"}`:              "1.5",
			`shop_timers_paused{kind="k",role="base"}`:                       "1",
		}
		expect(t, scrape(t, tel), want)
		expect(t, scrape(t, tel), want)
		if calls != 1 {
			t.Errorf("counted %d times within the interval", calls)
		}
		time.Sleep(10 * time.Second)
		if got := scrape(t, tel); has(got, "shop_timers_open") || !has(got, "go_goroutines") {
			t.Error("a count that failed is shown, or takes the others along")
		}
		time.Sleep(10 * time.Second)
		expect(t, scrape(t, tel), want)
	})
}
