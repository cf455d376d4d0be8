package bench_test

import (
	"math"
	"testing"
	"time"

	"example.com/shop/loadtest/peers/bench"
)

func itself(v float64) float64 { return v }

func TestRatioComparesWithinRounds(t *testing.T) {
	a, b := bench.Cell[float64]{10, 1, 6}, bench.Cell[float64]{5, 1, 2}
	if got := bench.Ratio(a, b, itself); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := bench.Ratio(a, nil, itself); !math.IsNaN(got) {
		t.Errorf("with nothing to compare: got %v, want NaN", got)
	}
}

func TestMedianAndPercentile(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{1, math.Inf(1), math.Inf(1)}, math.Inf(1)}} {
		if got := bench.Median(tt.values); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	waits := make([]time.Duration, 100)
	for i := range waits {
		waits[i] = time.Duration(i+1) * time.Microsecond
	}
	if a, b := bench.Percentile(waits, 99), bench.Percentile(waits, 100); a != 100 || b != 100 {
		t.Errorf("got %v and %v, want the highest two ranks", a, b)
	}
	if got := bench.Percentile(waits, 50); got != 51 {
		t.Errorf("got %v, want 51", got)
	}
}
