package main

import "example.com/shop/bench/measure"

// sample is what one run of one cell has brought. Times are microseconds.
type sample struct {
	rate                       float64 // things per second
	offered, scheduled, fired  float64 // per second; fired in the best second
	min, p50, p99, p999, max   float64
	floor                      float64 // p99 of a bare sleep alongside it
	over                       float64 // p99 - floor
	early, lost, twice, behind float64 // timers; behind is how long after the last due the last one fired
	redis, own                 float64 // processor time, as a share of one core
	n                          float64 // timers there were
	bytes                      float64 // of Redis, per timer
	took                       float64
	swept                      float64 // timers that the overdue scan handled
}

// cell is the samples of one workload on one subject.
type cell = measure.Cell[sample]

func rate(s sample) float64      { return s.rate }
func scheduled(s sample) float64 { return s.scheduled }
func fired(s sample) float64     { return s.fired }
func least(s sample) float64     { return s.min }
func p50(s sample) float64       { return s.p50 }
func p99(s sample) float64       { return s.p99 }
func p999(s sample) float64      { return s.p999 }
func longest(s sample) float64   { return s.max }
func floor(s sample) float64     { return s.floor }
func over(s sample) float64      { return s.over }
func early(s sample) float64     { return s.early / s.n }
func behind(s sample) float64    { return s.behind }
func redisCPU(s sample) float64  { return s.redis }
func capacity(s sample) float64  { return s.rate / s.redis }
func own(s sample) float64       { return s.own }
func number(s sample) float64    { return s.n }
func size(s sample) float64      { return s.bytes }
func swept(s sample) float64     { return s.swept }
func took(s sample) float64      { return s.took }
