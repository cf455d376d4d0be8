package throughput

import (
	"math"
	"slices"
)

// Report is the result of a run. Its JSON form is public.
type Report struct {
	Variants []Variant `json:"variants"`
	Limits   Limits    `json:"limits"`
	Load     Load      `json:"load"`
	Machine  Machine   `json:"machine"`
}

// Variant is what one strategy did. Figures are medians of the rounds.
type Variant struct {
	Strategy string `json:"strategy"`

	OrdersPerSecond float64 `json:"orders_per_second"`
	P50             float64 `json:"p50_ms"`
	P99             float64 `json:"p99_ms"`
	P999            float64 `json:"p999_ms"`

	// The result, of all rounds and of the turn that sells out.
	Oversold    int64 `json:"oversold"`     // units
	Undersold   int64 `json:"undersold"`    // units
	LostUpdates int64 `json:"lost_updates"` // units
	AuditOK     bool  `json:"audit_ok"`
	Placed      int64 `json:"placed"`
	Refused     int64 `json:"refused"` // responses that asked a buyer to come back
	Errors      int64 `json:"errors"`

	// The costs of an order. SQL is statements, of which several may share a round trip; Redis is round trips.
	SQL     float64            `json:"sql_per_order"`
	Commits float64            `json:"transactions_per_order"`
	Redis   float64            `json:"redis_per_order"`
	CPU     map[string]float64 `json:"cpu_ms_per_order"` // by kind of process

	Others float64 `json:"processors_of_others"` // that programs used which are no part of the run

	// Medians of the ratios within a round; 0 if there is no such variant.
	ToNaive       float64 `json:"ratio_to_naive,omitempty"`
	ToConditional float64 `json:"ratio_to_conditional,omitempty"`

	Rounds []Round `json:"rounds"`

	firstError string
}

// Round is one turn.
type Round struct {
	OrdersPerSecond float64 `json:"orders_per_second"`
	P50             float64 `json:"p50_ms"`
	P99             float64 `json:"p99_ms"`
	P999            float64 `json:"p999_ms"`

	sql, commits, redis float64
	cpu                 map[string]float64
	others              float64
}

// Limits are what the parts reach alone, with as many connections.
type Limits struct {
	Commits  float64 `json:"commits_per_second,omitempty"`       // of one row each, the rate of the database's flushes shared by its group commit
	Rows     float64 `json:"rows_per_second,omitempty"`          // of orders, in transactions of many
	Requests float64 `json:"http_requests_per_second,omitempty"` // that ask an instance for nothing
}

// Load is what was asked for.
type Load struct {
	Stores      []string `json:"stores"`
	Instances   int      `json:"instances"`
	Connections int      `json:"connections"`
	SKUs        int      `json:"skus"`
	Catalog     int      `json:"other_skus"`
	Open        int      `json:"open_orders"` // before the first turn
	Keys        bool     `json:"idempotency_keys"`
	Own         bool     `json:"own_skus,omitempty"` // each buyer buys one
	Rounds      int      `json:"rounds"`
	Seconds     float64  `json:"seconds"`
	Rate        int      `json:"rate,omitempty"`
}

// Machine is where.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	Time string `json:"time"`

	CPU     string            `json:"cpu,omitempty"`
	Commit  string            `json:"commit,omitempty"` // of the service, if its program reports it
	Servers map[string]string `json:"servers"`          // versions of those that say theirs
}

// OK reports whether every variant that must be exact was, and no request failed.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Variants, func(a Variant) bool { return !a.OK() })
}

// unsafe are the strategies that are there to fail.
var unsafe = []string{"naive", "local"}

// OK reports whether the variant came out as it must.
func (a Variant) OK() bool {
	if a.Errors > 0 || a.Placed == 0 {
		return false
	}
	return slices.Contains(unsafe, a.Strategy) || a.AuditOK && a.Oversold == 0 && a.Undersold == 0 && a.LostUpdates == 0
}

// summarize fills the medians of all variants.
func summarize(variants []*Variant) {
	var naive, conditional *Variant
	for _, a := range variants {
		switch a.Strategy {
		case "naive":
			naive = a
		case "conditional":
			conditional = a
		}
	}
	for _, a := range variants {
		a.OrdersPerSecond = over(a.Rounds, func(r Round) float64 { return r.OrdersPerSecond })
		a.P50 = over(a.Rounds, func(r Round) float64 { return r.P50 })
		a.P99 = over(a.Rounds, func(r Round) float64 { return r.P99 })
		a.P999 = over(a.Rounds, func(r Round) float64 { return r.P999 })
		a.SQL = over(a.Rounds, func(r Round) float64 { return r.sql })
		a.Commits = over(a.Rounds, func(r Round) float64 { return r.commits })
		a.Redis = over(a.Rounds, func(r Round) float64 { return r.redis })
		a.Others = over(a.Rounds, func(r Round) float64 { return r.others })
		a.CPU = map[string]float64{}
		for kind := range a.Rounds[0].cpu {
			a.CPU[kind] = over(a.Rounds, func(r Round) float64 { return r.cpu[kind] })
		}
		a.ToNaive, a.ToConditional = ratio(a, naive), ratio(a, conditional)
	}
}

// over is the median of a figure.
func over(rounds []Round, of func(Round) float64) float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	return round(Median(values), 3)
}

// ratio is the median of the ratios of the rounds.
func ratio(a, to *Variant) float64 {
	if to == nil {
		return 0
	}
	var values []float64
	for i, r := range a.Rounds {
		values = append(values, r.OrdersPerSecond/to.Rounds[i].OrdersPerSecond)
	}
	return round(Median(values), 2)
}

// Median returns the value in the middle, or what is half way between the two; 0 of none.
func Median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

// round keeps so many decimals, and makes nothing of what is no number.
func round(x float64, decimals int) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	p := math.Pow10(decimals)
	return math.Round(x*p) / p
}
