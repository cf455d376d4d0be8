package main

import (
	"math"
	"slices"

	"example.com/shop/bench/throughput"
)

// processes are those whose time the model has.
var processes = []string{"load", "shop", "mariadb", "redis"}

// rounds returns the costs of each round, by itself.
func (m Measured) rounds(seconds float64) (all []Costs) {
	last := m.Runs[len(m.Runs)-1].Round
	for round := 1; round <= last; round++ {
		one := Measured{Runs: slices.DeleteFunc(slices.Clone(m.Runs), func(r Run) bool { return r.Round != round })}
		all = append(all, one.fit(seconds))
	}
	return all
}

// of returns the runs of a load.
func (m Measured) of(l Load) (runs []Run) {
	for _, r := range m.Runs {
		if r.Load == l {
			runs = append(runs, r)
		}
	}
	return runs
}

// middle is the median of a figure of runs.
func middle(runs []Run, figure func(Run) float64) float64 {
	var values []float64
	for _, r := range runs {
		values = append(values, figure(r))
	}
	return throughput.Median(values)
}

// fit returns the costs that reproduce the runs of the fitted loads. Those of processors are a straight line through
// what an order costs over the transactions per order, and what many SKUs cost above that. The other two are the best of a grid, whose step is halved.
func (m Measured) fit(seconds float64) Costs {
	c := Costs{Order: map[string]float64{}, Transaction: map[string]float64{}, Row: map[string]float64{}}
	for _, kind := range processes {
		var x, y []float64
		for _, l := range fitted {
			runs := m.of(l)
			x = append(x, middle(runs, func(r Run) float64 { return r.Transactions }))
			y = append(y, middle(runs, func(r Run) float64 { return r.CPU[kind] / 1000 }))
		}
		c.Order[kind], c.Transaction[kind] = line(x, y)
		runs := m.of(manyRows)
		tx := middle(runs, func(r Run) float64 { return r.Transactions })
		extra := middle(runs, func(r Run) float64 { return r.CPU[kind] / 1000 }) - c.Order[kind] - c.Transaction[kind]*tx
		c.Row[kind] = max(0, extra/(1-tx)) // the buyers take turns, so all orders of a transaction have other SKUs
	}
	least, step := math.Inf(1), [2]float64{0.2, 200e-6}
	at := [2]float64{0.5, 300e-6}
	for range 4 {
		middle := at
		for i := range 5 {
			for j := range 5 {
				try := c
				try.Inside = middle[0] + float64(i-2)*step[0]
				try.Wait = middle[1] + float64(j-2)*step[1]
				if try.Inside < 0 || try.Inside > 1 || try.Wait < 0 {
					continue
				}
				if e := m.miss(try, seconds); e < least {
					least, at = e, [2]float64{try.Inside, try.Wait}
				}
			}
		}
		step[0], step[1] = step[0]/2, step[1]/2
	}
	c.Inside, c.Wait = at[0], at[1]
	return c
}

// miss is the sum of the squares by which costs miss the orders per second of the fitted loads.
func (m Measured) miss(c Costs, seconds float64) (sum float64) {
	for _, l := range fitted {
		runs := m.of(l)
		r := Simulate(c, l.setup(seconds), 1)
		off := math.Log(r.OrdersPerSecond / middle(runs, func(r Run) float64 { return r.OrdersPerSecond }))
		sum += off * off
	}
	return sum
}

func (l Load) setup(seconds float64) Setup {
	return Setup{Instances: l.Instances, Buyers: l.Connections, SKUs: l.SKUs, Cores: cores, WarmUp: seconds / 4, Seconds: seconds}
}

// line is the straight line through points that has the least squares of relative distances. Neither part is negative.
func line(x, y []float64) (at0, slope float64) {
	var w, wx, wy, wxx, wxy float64
	for i := range x {
		v := 1 / (y[i] * y[i])
		w, wx, wy, wxx, wxy = w+v, wx+v*x[i], wy+v*y[i], wxx+v*x[i]*x[i], wxy+v*x[i]*y[i]
	}
	slope = max(0, (w*wxy-wx*wy)/(w*wxx-wx*wx))
	return max(0, (wy-slope*wx)/w), slope
}

// work is the processor time of an order in a transaction of n.
func (c Costs) work(skus int, n float64) (sum float64) {
	for _, kind := range processes {
		sum += c.Order[kind] + (c.Transaction[kind]+c.Row[kind]*(min(float64(skus), n)-1))/n
	}
	return sum
}

// Prediction is what the model says of a load, and what was measured.
type Prediction struct {
	Load
	Runs       int     `json:"runs"`
	Measured   float64 `json:"measured"` // orders per second, median
	Model      float64 `json:"model"`    // the same of the model
	Error      float64 `json:"error"`    // median of model / measured - 1 of each round
	Noise      float64 `json:"noise"`    // median of the differences of model / measured of one round and the next
	Work       float64 `json:"work"`     // processor time of an order, median of measured / model
	BatchModel float64 `json:"batch_model"`
	Batch      float64 `json:"batch"` // orders per transaction, median
}

// predict returns the predictions of some loads: of each round by the costs that were fitted to the same round, since a
// machine with other work is not equally fast in all of them.
func (m Measured) predict(c []Costs, loads []Load, seconds float64) (all []Prediction) {
	for _, l := range loads {
		var measured, model, ratio, noise, work, batches, modelBatches []float64
		for i, r := range m.of(l) {
			costs := c[r.Round-1]
			s := Simulate(costs, l.setup(seconds), 1)
			measured, model = append(measured, r.OrdersPerSecond), append(model, s.OrdersPerSecond)
			batches, modelBatches = append(batches, 1/r.Transactions), append(modelBatches, s.Batch)
			used := 0.0
			for _, kind := range processes {
				used += r.CPU[kind] / 1000
			}
			work = append(work, used/costs.work(l.SKUs, s.Batch))
			if ratio = append(ratio, s.OrdersPerSecond/r.OrdersPerSecond); i > 0 {
				noise = append(noise, math.Abs(ratio[i]/ratio[i-1]-1))
			}
		}
		all = append(all, Prediction{
			Load: l, Runs: len(ratio), Measured: throughput.Median(measured), Model: throughput.Median(model), Error: throughput.Median(ratio) - 1, Noise: throughput.Median(noise),
			Work: throughput.Median(work), Batch: throughput.Median(batches), BatchModel: throughput.Median(modelBatches),
		})
	}
	return all
}
