package main

import (
	"math"
	"slices"
	"time"
)

// sample is what one run of one cell has brought.
type sample struct {
	rate          float64 // acquisitions per second
	p50, p99, max float64 // of the waits, in microseconds
	least, most   float64 // acquisitions of one goroutine
	spread        float64 // most / least
	commands      float64 // sent by clients, per acquisition
	calls         float64 // executed by the server, those of scripts included, per acquisition
	cpu           float64 // of the server, in microseconds per acquisition
	own           float64 // of the clients, in microseconds per acquisition
}

// percentile returns a percentile of sorted durations, in microseconds, and NaN of none.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := min(len(sorted)*percent/100, len(sorted)-1)
	return float64(sorted[at].Nanoseconds()) / 1e3
}

// median returns the one in the middle, or what is half way between the two.
func median(values []float64) float64 {
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

// cell is the samples of one workload on one subject.
type cell []sample

// of returns one field of all samples.
func (c cell) of(field func(sample) float64) []float64 {
	values := make([]float64, len(c))
	for i, s := range c {
		values[i] = field(s)
	}
	return values
}

// mid returns the median of one field over the rounds.
func (c cell) mid(field func(sample) float64) float64 { return median(c.of(field)) }

// worst returns the greatest value of one field.
func (c cell) worst(field func(sample) float64) float64 {
	if len(c) == 0 {
		return math.NaN()
	}
	return slices.Max(c.of(field))
}

// ratio is the median of the ratios of one field in every round: what shares a
// round shares the state of the machine.
func ratio(a, b cell, field func(sample) float64) float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, field(a[i])/field(b[i]))
	}
	return median(ratios)
}

func rate(s sample) float64     { return s.rate }
func p50(s sample) float64      { return s.p50 }
func p99(s sample) float64      { return s.p99 }
func longest(s sample) float64  { return s.max }
func least(s sample) float64    { return s.least }
func most(s sample) float64     { return s.most }
func spread(s sample) float64   { return s.spread }
func commands(s sample) float64 { return s.commands }
func calls(s sample) float64    { return s.calls }
func cpu(s sample) float64      { return s.cpu }
func own(s sample) float64      { return s.own }
func work(s sample) float64     { return s.cpu + s.own }
