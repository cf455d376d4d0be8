package main

import "example.com/shop/bench/measure"

// sample is what one run of one cell has brought.
type sample struct {
	grants         float64 // acquisitions
	rate           float64 // of these per second
	p50, p99, max  float64 // of the waits, in microseconds
	gave50, gave99 float64 // of the releases, in microseconds
	least, most    float64 // acquisitions of one goroutine
	spread         float64 // most / least
	commands       float64 // sent by clients, per acquisition
	calls          float64 // executed by the server, those of scripts included, per acquisition
	cpu            float64 // of the server, in microseconds per acquisition
	served         float64 // of all servers that this program has started, the same
	own            float64 // of the clients, in microseconds per acquisition
}

// cell is the samples of one workload on one subject.
type cell = measure.Cell[sample]

func rate(s sample) float64     { return s.rate }
func p50(s sample) float64      { return s.p50 }
func p99(s sample) float64      { return s.p99 }
func gave50(s sample) float64   { return s.gave50 }
func gave99(s sample) float64   { return s.gave99 }
func longest(s sample) float64  { return s.max }
func least(s sample) float64    { return s.least }
func most(s sample) float64     { return s.most }
func spread(s sample) float64   { return s.spread }
func commands(s sample) float64 { return s.commands }
func calls(s sample) float64    { return s.calls }
func cpu(s sample) float64      { return s.cpu }
func served(s sample) float64   { return s.served }
func own(s sample) float64      { return s.own }
func work(s sample) float64     { return s.cpu + s.own }
