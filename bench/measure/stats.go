package measure

import (
	"math"
	"slices"
	"time"
)

// Percentile returns a percentile of sorted durations, in microseconds, and NaN of none.
func Percentile(sorted []time.Duration, percent float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := min(int(float64(len(sorted))*percent/100), len(sorted)-1)
	return float64(sorted[at].Nanoseconds()) / 1e3
}

// Median returns the one in the middle, or what is half way between the two.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if a, b := sorted[(n-1)/2], sorted[n/2]; a != b {
		return (a + b) / 2
	}
	return sorted[n/2]
}

// Cell is what one workload on one subject has brought, a sample for each round.
type Cell[S any] []S

// Of returns one field of all samples.
func (c Cell[S]) Of(field func(S) float64) []float64 {
	values := make([]float64, len(c))
	for i, s := range c {
		values[i] = field(s)
	}
	return values
}

// Mid returns the median of one field over the rounds.
func (c Cell[S]) Mid(field func(S) float64) float64 { return Median(c.Of(field)) }

// Worst returns the greatest value of one field, and NaN of none.
func (c Cell[S]) Worst(field func(S) float64) float64 {
	if len(c) == 0 {
		return math.NaN()
	}
	return slices.Max(c.Of(field))
}

// Least returns the lowest value of one field, and NaN of none.
func (c Cell[S]) Least(field func(S) float64) float64 {
	if len(c) == 0 {
		return math.NaN()
	}
	return slices.Min(c.Of(field))
}

// Span writes the lowest and the highest value of one field.
func (c Cell[S]) Span(field func(S) float64) string {
	if len(c) == 0 {
		return "-"
	}
	return Count(c.Least(field)) + ".." + Count(c.Worst(field))
}

// Ratio is the median of the ratios of one field in every round: what shares a
// round shares the state of the machine.
func Ratio[S any](a, b Cell[S], field func(S) float64) float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, field(a[i])/field(b[i]))
	}
	return Median(ratios)
}
