package measure_test

import (
	"math"
	"testing"
	"time"

	"example.com/shop/bench/measure"
)

func itself(v float64) float64 { return v }

func TestRatioComparesWithinRounds(t *testing.T) {
	a, b := measure.Cell[float64]{10, 1, 6}, measure.Cell[float64]{5, 1, 2}
	if got := measure.Ratio(a, b, itself); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := measure.Ratio(a, nil, itself); !math.IsNaN(got) {
		t.Errorf("with nothing to compare: got %v, want NaN", got)
	}
}

func TestMedianAndPercentile(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{1, math.Inf(1), math.Inf(1)}, math.Inf(1)}} {
		if got := measure.Median(tt.values); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	waits := make([]time.Duration, 100)
	for i := range waits {
		waits[i] = time.Duration(i+1) * time.Microsecond
	}
	if a, b := measure.Percentile(waits, 99), measure.Percentile(waits, 100); a != 100 || b != 100 {
		t.Errorf("got %v and %v, want the highest two ranks", a, b)
	}
	if got := measure.Percentile(waits, 50); got != 51 {
		t.Errorf("got %v, want 51", got)
	}
}
