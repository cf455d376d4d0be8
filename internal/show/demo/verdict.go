package demo

import (
	"math"
	"slices"
	"strings"
	"time"

	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/stock"
)

// The verdicts of a variant and, the last three, of a run. An inconclusive variant is one whose instances did not respond.
const (
	Exact        = "exact"
	Oversold     = "oversold"
	Undersold    = "undersold"
	Broken       = "broken"
	Proved       = "proved"
	Failed       = "failed"
	Inconclusive = "inconclusive"
)

// Variant is the result of one sale. Its JSON form is public.
type Variant struct {
	Strategy        string  `json:"strategy"`
	Expected        string  `json:"expected"`
	Stock           int     `json:"stock"`
	Attempts        int     `json:"attempts"`
	Accepted        int     `json:"accepted"`
	Rejected        int     `json:"rejected"`
	Errors          int     `json:"errors"`
	Oversold        int     `json:"oversold"`
	Undersold       int     `json:"undersold"`
	LostUpdates     int     `json:"lost_updates"`
	OrdersPerSecond float64 `json:"orders_per_second"` // attempts answered, accepted or not
	P50             float64 `json:"p50_ms"`
	P99             float64 `json:"p99_ms"`
	InstancesHit    int     `json:"instances_hit"`
	AuditOK         bool    `json:"audit_ok"`
	Verdict         string  `json:"verdict"`
	Repeated        int     `json:"repeated,omitempty"` // sales before this one that were not as expected, and showed nothing

	broken     []string // invariants, as the audit names them
	firstError string
}

// Report is the result of a run. Its JSON form is public.
type Report struct {
	Instances int       `json:"instances"`
	Stores    Stores    `json:"stores"`
	Verdict   string    `json:"verdict"`
	Variants  []Variant `json:"variants"`

	Missing Missing `json:"missing,omitzero"`
	Cluster Cluster `json:"cluster,omitzero"`

	// Expiry is nil where the instances are not the demo's own.
	Expiry *Expiry `json:"expiry,omitempty"`
}

// Missing says on what nothing was shown.
type Missing struct {
	Stores     []string `json:"stores,omitempty"`     // that are not installed
	Strategies []string `json:"strategies,omitempty"` // whose stores there are not
}

// Stores says what kind of stores a run used.
type Stores struct {
	Redis    string `json:"redis"`
	Database string `json:"database"`

	// How many servers there were.
	Redlock   int `json:"redlock,omitempty"`
	ZooKeeper int `json:"zookeeper,omitempty"`
	Etcd      int `json:"etcd,omitempty"`
}

// kinds returns what kind of stores there are.
func kinds(s *fleet.Stores) Stores {
	servers := func(list string) int {
		if list == "" {
			return 0
		}
		return 1 + strings.Count(list, ",")
	}
	k := Stores{Redis: "redis", Redlock: servers(s.Redlock), ZooKeeper: servers(s.ZooKeeper), Etcd: servers(s.Etcd)}
	if s.Embedded {
		k.Redis = "embedded"
	}
	k.Database, _, _ = strings.Cut(s.Database, ":")
	return k
}

// expected returns what a variant has to show. local is exact on one instance.
func expected(strategy string, instances int) string {
	if strategy == "naive" || strategy == "local" && instances > 1 {
		return Oversold
	}
	return Exact
}

// judge compares the responses that the buyers received with the audit of the database.
func judge(strategy string, units, attempts, instances int, s buyers.Sale, a stock.Audit) Variant {
	variant := Variant{
		Strategy:        strategy,
		Expected:        expected(strategy, instances),
		Stock:           units,
		Attempts:        attempts,
		Accepted:        s.Accepted,
		Rejected:        s.Rejected,
		Errors:          s.Errors,
		Oversold:        int(a.Oversold()),
		Undersold:       max(int(a.Undersold()), min(units, attempts)-int(a.Accepted())),
		LostUpdates:     int(a.LostUpdates()),
		OrdersPerSecond: round(float64(attempts-s.Errors) / s.Elapsed.Seconds()),
		P50:             milliseconds(s.Percentile(50)),
		P99:             milliseconds(s.Percentile(99)),
		InstancesHit:    len(s.Instances),
		AuditOK:         a.OK(),
		broken:          a.Broken(),
		firstError:      s.FirstError,
	}
	// A request that broke off may or may not have become an order.
	matches := s.Accepted <= int(a.Accepted()) && int(a.Accepted()) <= s.Accepted+s.Errors
	complete := s.Accepted+s.Rejected+s.Errors == attempts
	switch {
	case !matches || !complete:
		variant.Verdict = Broken
	case variant.Oversold > 0:
		variant.Verdict = Oversold
	case variant.Undersold > 0:
		variant.Verdict = Undersold
	case !variant.AuditOK, variant.Errors > 0, variant.InstancesHit < min(2, instances):
		variant.Verdict = Broken
	default:
		variant.Verdict = Exact
	}
	return variant
}

// failed reports whether a strategy that must be exact was not.
func (a Variant) failed() bool {
	return !slices.Contains(baselines, a.Strategy) && a.Verdict != Exact && a.Verdict != Inconclusive
}

// verdict judges a run. The unsafe baselines must oversell, or the load was too weak to prove anything. All other
// strategies must be exact, and unpaid orders must expire. On a single instance, local is no unsafe baseline.
func verdict(r Report) string {
	if r.Expiry != nil && !r.Expiry.ok() {
		return Failed
	}
	controlled := false
	weak := false
	for _, a := range r.Variants {
		if a.failed() {
			return Failed
		}
		weak = weak || a.Verdict == Inconclusive
		if !slices.Contains(baselines, a.Strategy) || a.Strategy == "local" && r.Instances < 2 {
			continue
		}
		controlled = true
		weak = weak || a.Verdict != Oversold
	}
	if !controlled || weak {
		return Inconclusive
	}
	return Proved
}

func milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// round keeps one decimal, which is more than a single run can show.
func round(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return math.Round(x*10) / 10
}
