package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/platform/backoff"
)

func TestSleepTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !backoff.Sleep(t.Context(), time.Second) || time.Since(began) != time.Second {
			t.Errorf("Sleep took %v, want 1s", time.Since(began))
		}
		began = time.Now()
		alive, took := backoff.Jitter(t.Context(), time.Second), time.Since(began)
		if !alive || took < time.Second/2 || took > time.Second {
			t.Errorf("Jitter took %v, want 0.5s to 1s", took)
		}
		if !backoff.Jitter(t.Context(), 0) {
			t.Error("Jitter without a time failed")
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if backoff.Sleep(ctx, time.Hour) || time.Since(began) != time.Second {
			t.Errorf("Sleep took %v, want the second of its context", time.Since(began))
		}
	})
}

func TestDecorrelatedSpreadsAttempts(t *testing.T) {
	t.Parallel()
	d := backoff.Decorrelated{Min: 2 * time.Millisecond, Max: 40 * time.Millisecond}
	seen := map[time.Duration]bool{}
	const n = 2000
	for i, prev := 0, time.Duration(0); i < n; i++ {
		next := d.Next(prev)
		if next < d.Min || next > min(d.Max, 3*max(prev, d.Min)) {
			t.Fatalf("a pause of %v after one of %v", next, prev)
		}
		seen[next] = true
		prev = next
	}
	if len(seen) < n/4 {
		t.Errorf("%d different pauses of %d: waiters would stay in step", len(seen), n)
	}
}
