package telemetry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
)

// watchOversold audits until the test ends.
func watchOversold(t *testing.T, mp metric.MeterProvider, audit telemetry.Audit) {
	t.Helper()
	run, err := telemetry.WatchOversold(mp, audit)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestOversoldIsSummedByStrategy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		watchOversold(t, tel.MeterProvider, func(context.Context) ([]stock.Audit, error) {
			return []stock.Audit{
				{SKU: "a", Strategy: "naive", Stocked: 10, Open: 12, Sold: 1},
				{SKU: "b", Strategy: "naive", Stocked: 10, Open: 14},
				{SKU: "c", Strategy: "naive", Stocked: 10, Open: 1}, // its rest does not make up for the others
				{SKU: "d", Strategy: "redis", Stocked: 10, Open: 10},
			}, nil
		})
		scrape(t, tel)
		time.Sleep(3 * time.Second)
		expect(t, scrape(t, tel), map[string]string{
			`shop_oversold_units{strategy="naive"}`: "7",
			`shop_oversold_units{strategy="redis"}`: "0",
			`shop_audit_age_seconds`:                "3",
		})
	})
}

func TestScrapesShareOneAuditPerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		audits := 0 // not atomic: the race detector sees two at once
		watchOversold(t, tel.MeterProvider, func(context.Context) ([]stock.Audit, error) {
			audits++
			return []stock.Audit{{Strategy: "naive", Open: int64(audits)}}, nil
		})
		const gauge = `shop_oversold_units{strategy="naive"}`
		var wg sync.WaitGroup
		for range 4 { // as many as are answered at once
			wg.Go(func() { scrape(t, tel) })
		}
		wg.Wait()
		time.Sleep(10*time.Second - time.Nanosecond)
		expect(t, scrape(t, tel), map[string]string{gauge: "1"})
		time.Sleep(2 * time.Nanosecond)
		expect(t, scrape(t, tel), map[string]string{gauge: "2"})
	})
}

// An audit of large books keeps no scrape waiting, and takes a twentieth of the time.
func TestSlowAuditsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		audits := 0
		watchOversold(t, tel.MeterProvider, func(ctx context.Context) ([]stock.Audit, error) {
			audits++
			select {
			case <-time.After(30 * time.Second):
				return []stock.Audit{{Strategy: "naive"}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		for range 70 { // minutes
			began := time.Now()
			scrape(t, tel)
			if took := time.Since(began); took > 0 {
				t.Fatalf("a scrape took %v", took)
			}
			time.Sleep(time.Minute)
		}
		if audits != 7 {
			t.Errorf("%d audits of 30 s in 70 minutes, want 7", audits)
		}
	})
}

func TestFailedAuditHidesTheGauge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := setup(t, telemetry.Config{})
		audits := 0
		watchOversold(t, tel.MeterProvider, func(context.Context) (_ []stock.Audit, err error) {
			if audits++; audits == 2 {
				err = errors.New("away")
			}
			return []stock.Audit{{Strategy: "naive", Open: 5}}, err
		})
		const gauge = `shop_oversold_units{strategy="naive"}`
		next := func() map[string]string {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			return scrape(t, tel)
		}
		scrape(t, tel)
		expect(t, next(), map[string]string{gauge: "5"})
		got := next()
		if v, ok := got[gauge]; ok {
			t.Errorf("the gauge shows %s, which nobody knows", v)
		}
		if _, ok := got["shop_audit_age_seconds"]; ok || !has(got, "go_goroutines") {
			t.Error("an audit that failed has an age, or took the other metrics with it")
		}
		expect(t, next(), map[string]string{gauge: "5", "shop_audit_failures_total": "1"})
	})
}
