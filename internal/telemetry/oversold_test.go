package telemetry_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
)

func TestOversoldIsSummedByStrategy(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	audit := func(context.Context) ([]stock.Audit, error) {
		return []stock.Audit{
			{SKU: "a", Strategy: "naive", Stocked: 10, Open: 12, Sold: 1},
			{SKU: "b", Strategy: "naive", Stocked: 10, Open: 14},
			{SKU: "c", Strategy: "naive", Stocked: 10, Open: 1}, // its rest does not make up for the others
			{SKU: "d", Strategy: "redis", Stocked: 10, Open: 10},
		}, nil
	}
	if err := telemetry.WatchOversold(tel.MeterProvider, audit, telemetry.OversoldConfig{}); err != nil {
		t.Fatal(err)
	}
	expect(t, scrape(t, tel), map[string]string{
		`shop_oversold_units{strategy="naive"}`: "7",
		`shop_oversold_units{strategy="redis"}`: "0",
	})
}

func TestScrapesShareOneAuditPerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		audits := 0 // not atomic: the race detector sees two at once
		audit := func(context.Context) ([]stock.Audit, error) {
			audits++
			return []stock.Audit{{Strategy: "naive", Open: int64(audits)}}, nil
		}
		if err := telemetry.WatchOversold(tel.MeterProvider, audit, telemetry.OversoldConfig{}); err != nil {
			t.Fatal(err)
		}
		const gauge = `shop_oversold_units{strategy="naive"}`
		var wg sync.WaitGroup
		for range 4 { // as many as are answered at once
			wg.Go(func() { scrape(t, tel) })
		}
		wg.Wait()
		time.Sleep(10*time.Second - time.Nanosecond)
		expect(t, scrape(t, tel), map[string]string{gauge: "1"})
		time.Sleep(time.Nanosecond)
		expect(t, scrape(t, tel), map[string]string{gauge: "2"})
	})
}

func TestFailedAuditHidesTheGauge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		answers := []func(ctx context.Context) error{
			func(context.Context) error { return nil },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			func(context.Context) error { return nil },
		}
		audit := func(ctx context.Context) ([]stock.Audit, error) {
			answer := answers[0]
			answers = answers[1:]
			return []stock.Audit{{Strategy: "naive", Open: 5}}, answer(ctx)
		}
		if err := telemetry.WatchOversold(tel.MeterProvider, audit, telemetry.OversoldConfig{}); err != nil {
			t.Fatal(err)
		}
		const gauge = `shop_oversold_units{strategy="naive"}`
		expect(t, scrape(t, tel), map[string]string{gauge: "5"})

		time.Sleep(10 * time.Second)
		start := time.Now()
		got := scrape(t, tel)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("the database did not answer and the scrape took %v", d)
		}
		if v, ok := got[gauge]; ok {
			t.Errorf("the gauge shows %s, which nobody knows", v)
		}
		if !has(got, "go_goroutines") {
			t.Error("the audit took the other metrics with it")
		}
		scrape(t, tel) // within the interval: no further try
		time.Sleep(10 * time.Second)
		expect(t, scrape(t, tel), map[string]string{gauge: "5", "shop_audit_failures_total": "1"})
	})
}
