package lab

import (
	"context"
	"fmt"
)

func mutexLab() Lab {
	return Lab{
		Number: 1, Name: "mutex", Title: "A mutex is not enough",
		Question: "An order service protects its stock with a mutex. Is that enough?",
		Expect:   "With one instance the mutex sells exactly what there is. With three instances it oversells, because each process has a mutex of its own.",
		Why: "A mutex excludes the goroutines of one process. Two instances can both read that one unit is left, and both sell it. Each then writes its own " +
			"result over that of the other.",
		Cure: "Use something that all instances share. The cheapest is the row itself: one UPDATE that checks and takes the unit. A distributed lock with a " +
			"fencing token is for work that one statement cannot express.",
		Links: []Link{
			{"the mutex", "internal/stock/mutex.go"},
			{"the conditional UPDATE", "internal/sqlstore/conditional.go"},
			{"the test of all strategies", "internal/sqlstore/blackbox/sale_test.go"},
		},
		Exercises: [3]string{
			"Sell by for-update, and compare the orders per second with those of conditional.",
			"How many units does local oversell with two instances, and with six? Explain the trend.",
			"Put all buyers on one of three instances. Is local exact then? What happens when that instance is replaced during the sale?",
		},
		Script: runMutex,
	}
}

func runMutex(ctx context.Context, r *Run) {
	s := r.open(ctx)
	f := s.instances(ctx, 3)
	units := r.Size(40, 200)
	picture := &Picture{Title: fmt.Sprintf("units sold of %d", units), Unit: "units"}
	sell := func(strategy string, instances int) (oversold int64) {
		sku := fmt.Sprintf("%s-%d", strategy, instances)
		audit := s.sell(ctx, f.First(instances), sku, strategy, units, 4*units, 24)
		name := fmt.Sprintf("%s, %s", strategy, count(instances, "instance"))
		r.Step("%s sold %d of %d units: %s", name, audit.Accepted(), units, verdict(audit.Oversold()))
		r.Measure("oversold: "+name, float64(audit.Oversold()), "units")
		picture.Bars = append(picture.Bars, Bar{name, float64(audit.Accepted()), kindOf(audit.Oversold() == 0)})
		return audit.Oversold()
	}
	alone := sell("local", 1)
	together := sell("local", 3)
	cured := sell("conditional", 3)
	leased := sell("redis", 3)
	r.Draw(picture)
	r.Effect(alone == 0, "one instance with a mutex oversold by %d", alone)
	r.Effect(together > 0, "three instances with a mutex each oversold by %d", together)
	r.Cure(cured == 0, "three instances with a conditional UPDATE oversold by %d", cured)
	r.Cure(leased == 0, "three instances with a Redis lock and a fencing token oversold by %d", leased)
}

func verdict(oversold int64) string {
	if oversold > 0 {
		return fmt.Sprintf("OVERSOLD by %d", oversold)
	}
	return "exact"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
