package main

import (
	"math"
	"testing"
)

// costs are about those of a machine with two processors.
var costs = Costs{
	Order:       map[string]float64{"load": 17e-6, "shop": 130e-6, "mariadb": 40e-6, "redis": 9e-6},
	Transaction: map[string]float64{"load": 0, "shop": 500e-6, "mariadb": 500e-6, "redis": 50e-6},
	Row:         map[string]float64{"shop": 10e-6, "mariadb": 12e-6},
	Inside:      0.4,
	Wait:        150e-6,
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got/want-1) > by || math.IsNaN(got) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestThreadsShareTheProcessors(t *testing.T) {
	t.Parallel()
	c := &clock{}
	m := &machine{clock: c, cores: 2}
	var ends []float64
	for _, work := range []float64{1, 1, 1, 4} {
		m.run(work, func() { ends = append(ends, c.now) })
	}
	c.until(100)
	// Four threads have half a processor each until 2. Then the last has one for the 3 s that are left.
	for i, want := range []float64{2, 2, 2, 5} {
		near(t, "end", ends[i], want, 1e-9)
	}
}

func TestProcessRunsAsManyAsItHasThreads(t *testing.T) {
	t.Parallel()
	c := &clock{}
	p := &process{on: &machine{clock: c, cores: 2}, threads: 1}
	var ends []float64
	for range 3 {
		p.run(1, func() { ends = append(ends, c.now) })
	}
	c.until(100)
	for i, want := range []float64{1, 2, 3} {
		near(t, "end", ends[i], want, 1e-9)
	}
}

func TestRowIsHeldUntilItsTransactionEnds(t *testing.T) {
	t.Parallel()
	r, order := rows{}, ""
	r.lock([]int{1, 2}, func() { order += "a" })
	r.lock([]int{2}, func() { order += "b" })
	r.lock([]int{1}, func() { order += "c" })
	if order != "a" {
		t.Fatalf("%q have the rows of a", order)
	}
	r.unlock([]int{2})
	r.unlock([]int{1})
	if order != "abc" {
		t.Errorf("%q, want abc", order)
	}
}

// A lonely buyer waits for each step, and for nothing else.
func TestLonelyOrderTakesTheSumOfItsSteps(t *testing.T) {
	t.Parallel()
	r := Simulate(costs, Setup{Instances: 1, Buyers: 1, SKUs: 1, Cores: 2, WarmUp: 0.1, Seconds: 2}, 1)
	sum := costs.Wait
	for _, kind := range []string{"load", "shop", "mariadb"} {
		sum += costs.Order[kind] + costs.Transaction[kind]
	}
	near(t, "orders/s", r.OrdersPerSecond, 1/sum, 0.01)
	near(t, "p50", r.P50, sum*1000, 0.01)
	near(t, "orders per transaction", r.Batch, 1, 0)
}

// No setup sells more than its processors, and buyers = orders/s x time (Little).
func TestLawsHoldForEachSetup(t *testing.T) {
	t.Parallel()
	for _, s := range []Setup{
		{Instances: 1, Buyers: 64, SKUs: 1, Cores: 2, WarmUp: 0.25, Seconds: 1},
		{Instances: 3, Buyers: 96, SKUs: 96, Cores: 2, WarmUp: 0.25, Seconds: 1},
		{Instances: 3, Buyers: 96, SKUs: 1, Cores: 1.5, WarmUp: 0.25, Seconds: 1},
		{Instances: 3, Buyers: 96, SKUs: 96, Zipf: 0.5, Cores: 2, WarmUp: 0.25, Seconds: 1},
	} {
		r := Simulate(costs, s, 1)
		work := 0.0
		for _, kind := range processes {
			work += costs.Order[kind] + costs.Transaction[kind]/r.Batch
		}
		if most := s.Cores / work; r.OrdersPerSecond > most*1.01 || r.OrdersPerSecond < most/2 {
			t.Errorf("%+v: %v orders/s, the processors allow %v", s, r.OrdersPerSecond, most)
		}
		near(t, "buyers", r.OrdersPerSecond*r.P50/1000, float64(s.Buyers), 0.15)
		if again := Simulate(costs, s, 1); again != r {
			t.Errorf("%+v: the same seed sold %+v, and then %+v", s, r, again)
		}
	}
}

// One SKU is sold by one transaction at a time, on however many machines. Its row bounds it.
func TestRowBoundsItsOwnSKU(t *testing.T) {
	t.Parallel()
	s := Setup{Instances: 10, Buyers: 960, SKUs: 1, Cores: 2, Writers: 1, WarmUp: 0.25, Seconds: 1}
	r := Simulate(costs, s, 1)
	held := (1-first)*(costs.Transaction["shop"]+costs.Transaction["mariadb"]+costs.Wait+r.Batch*costs.Inside*costs.Order["shop"]) + r.Batch*costs.Order["mariadb"]
	near(t, "orders/s", r.OrdersPerSecond, r.Batch/held, 0.05)
	s.SKUs = 10_000
	if many := Simulate(costs, s, 1); many.OrdersPerSecond < 2*r.OrdersPerSecond {
		t.Errorf("%v orders/s of many SKUs, %v of one", many.OrdersPerSecond, r.OrdersPerSecond)
	}
}

func TestBasketAcrossWritersCostsMore(t *testing.T) {
	t.Parallel()
	s := Setup{Instances: 20, Buyers: 400, SKUs: 1000, Cores: 2, Writers: 2, Routed: true, Network: 0.0002, WarmUp: 0.1, Seconds: 0.3}
	apart := Simulate(costs, s, 1)
	s.Across = 0.2
	some := Simulate(costs, s, 1)
	if some.OrdersPerSecond > 0.8*apart.OrdersPerSecond || some.OrdersPerSecond == 0 {
		t.Errorf("%v orders/s with baskets across writers, %v without", some.OrdersPerSecond, apart.OrdersPerSecond)
	}
	s.Across = 1
	if all := Simulate(costs, s, 1); all.Batch != 1 || all.OrdersPerSecond < some.OrdersPerSecond/10 {
		t.Errorf("baskets across writers alone: %+v", all)
	}
}

// The fit finds the costs of runs that the model itself made, and predicts loads that it was not fitted to.
func TestFitFindsTheCostsOfSimulatedRuns(t *testing.T) {
	t.Parallel()
	var m Measured
	for _, l := range append([]Load{{3, 48, 1, ""}, manyRows}, fitted...) {
		r := Simulate(costs, l.setup(0.2), 1)
		run := Run{Load: l, Round: 1, OrdersPerSecond: r.OrdersPerSecond, Transactions: 1 / r.Batch, CPU: map[string]float64{}}
		for _, kind := range processes {
			run.CPU[kind] = 1000 * (costs.Order[kind] + costs.Transaction[kind]/r.Batch)
			if l == manyRows {
				run.CPU[kind] += 1000 * costs.Row[kind] * (1 - 1/r.Batch)
			}
		}
		m.Runs = append(m.Runs, run)
	}
	c := m.fit(0.2)
	for _, kind := range processes {
		near(t, "an order in "+kind, c.Order[kind], costs.Order[kind], 0.01)
	}
	near(t, "a row of MariaDB", c.Row["mariadb"], costs.Row["mariadb"], 0.01)
	near(t, "a transaction of MariaDB", c.Transaction["mariadb"], costs.Transaction["mariadb"], 0.01)
	for _, p := range m.predict([]Costs{c}, []Load{{3, 48, 1, ""}}, 0.2) {
		near(t, "orders/s of three instances", p.Model, p.Measured, 0.05)
	}
}
