package lab

import (
	"context"
	"fmt"
)

func runMutex(ctx context.Context, r *Run) {
	s := r.open(ctx)
	f := s.instances(ctx, 3)
	units := r.Size(40, 200)
	picture := &Picture{Title: fmt.Sprintf("units sold of %d", units), Unit: "units", Legend: Legend{Holds: "exact", Stale: "oversold"}}
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
