package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"example.com/shop/bench/throughput"
)

// Files below the folder of the documentation.
const (
	results   = "benchmarks/results/scale.json"
	chartFile = "benchmarks/results/scale.svg"
	pageFile  = "explanation/scale.md"
	engines   = "benchmarks/results/engines.md"
)

// Study is all that the page shows.
type Study struct {
	Measured
	Costs     Costs        `json:"costs"` // of the medians of all rounds
	ByRound   []Costs      `json:"costs_by_round"`
	Fitted    []Prediction `json:"fitted"`
	Predicted []Prediction `json:"predicted"`
	Futures   []Future     `json:"futures,omitempty"` // none unless the model holds
	Failovers []Failover   `json:"-"`                 // those of the report on engines
}

// read reads a study, and the failovers, from the documentation.
func read(docs string) (s Study, err error) {
	raw, err := os.ReadFile(filepath.Join(docs, results)) //nolint:gosec // the caller's
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("%s: %w", results, err)
	}
	s.Failovers, err = failovers(docs)
	return s, err
}

func (s Study) save(docs string) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, results), append(raw, '\n'), 0o644) //nolint:gosec // to be read
}

// tolerance is by how much the model may miss a measured run.
const tolerance = 0.15

// think fits the model, and simulates many machines if it holds.
func (s *Study) think(seconds float64) {
	s.Costs = s.fit(1)
	s.ByRound = s.rounds(1)
	s.Fitted = s.predict(s.ByRound, fitted, 2)
	s.Predicted = s.predict(s.ByRound, predicted, 2)
	if s.Futures = nil; s.Holds() {
		s.Futures = futures(s.Costs, s.Flush()/1000, seconds, fleets)
	}
}

// Holds reports whether the model reproduces each load that it was not fitted to.
func (s Study) Holds() bool {
	return len(s.Predicted) > 0 && s.Worst() <= tolerance
}

// Worst is the largest error of a prediction.
func (s Study) Worst() (worst float64) {
	for _, p := range s.Predicted {
		worst = max(worst, math.Abs(p.Error))
	}
	return worst
}

// Missed returns the predictions that are further off than the model may be.
func (s Study) Missed() []Prediction {
	return slices.DeleteFunc(slices.Clone(s.Predicted), func(p Prediction) bool { return math.Abs(p.Error) <= tolerance })
}

// Rounds is how many runs each load has at least.
func (s Study) Rounds() int {
	least := math.MaxInt
	for _, p := range s.Predicted {
		least = min(least, p.Runs)
	}
	return least
}

// One is the median of the runs of a load.
func (s Study) One(instances, connections, skus int, store string) Run {
	runs := s.of(Load{instances, connections, skus, store})
	return Run{
		Load: Load{instances, connections, skus, store}, OrdersPerSecond: middle(runs, func(r Run) float64 { return r.OrdersPerSecond }),
		P50: middle(runs, func(r Run) float64 { return r.P50 }), Transactions: middle(runs, func(r Run) float64 { return r.Transactions }),
		Statements: middle(runs, func(r Run) float64 { return r.Statements }),
		CPU: map[string]float64{
			"shop":    middle(runs, func(r Run) float64 { return r.CPU["shop"] }),
			"mariadb": middle(runs, func(r Run) float64 { return r.CPU["mariadb"] }),
		},
	}
}

// Flush is how many milliseconds the disk takes, the median of the rounds.
func (s Study) Flush() float64 { return throughput.Median(s.Flushes) }

// Others is how many processors other programs used during a run.
func (s Study) Others() float64 { return middle(s.Runs, func(r Run) float64 { return r.Others }) }

// Buyers returns those of the runs of one instance and one SKU, on MariaDB.
func (s Study) Buyers() (buyers []int) {
	for _, l := range append([]Load{lonely}, fitted...) {
		buyers = append(buyers, l.Connections)
	}
	return buyers
}

// SQLite returns the buyers of the runs on SQLite.
func (s Study) SQLite() (buyers []int) {
	for _, l := range alongside {
		if len(s.of(l)) > 0 {
			buyers = append(buyers, l.Connections)
		}
	}
	return buyers
}

// Held is for how many seconds a transaction of n orders keeps its rows.
func (s Study) Held(n float64) float64 {
	c := s.Costs
	return (1-first)*(c.Transaction["shop"]+c.Transaction["mariadb"]+c.Wait+n*c.Inside*c.Order["shop"]) + n*c.Order["mariadb"]
}

// Row is how many orders per second one row allows, with n orders in each transaction.
func (s Study) Row(n float64) float64 { return n / s.Held(n) }

// Processors is how many orders per second the processors of one writer allow, with n orders in each transaction.
func (s Study) Processors(n float64) float64 {
	return cores / (s.Costs.Order["mariadb"] + s.Costs.Transaction["mariadb"]/n)
}

// Hottest is the share of the most popular SKU of the catalogue, by Zipf.
func (s Study) Hottest() float64 {
	sum := 0.0
	for i := range catalogue {
		sum += 1 / float64(i+1)
	}
	return 1 / sum
}

// Failover is a row of the report on engines: a server is killed and no order is lost.
type Failover struct {
	Engine  string
	Fault   string
	Seconds float64
}

var failoverRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]*killed[^|]*) \| \d+ \| \d+ \| 0 \| ([0-9. |]+) \|$`)

// PerYear is how often it happens if each server fails once a year: on Galera, each of three has instances.
func (f Failover) PerYear() float64 {
	if strings.EqualFold(f.Engine, "galera") {
		return 3
	}
	return 1
}

// failovers reads the report on engines.
func failovers(docs string) (all []Failover, err error) {
	text, err := os.ReadFile(filepath.Join(docs, engines)) //nolint:gosec // the caller's
	if err != nil {
		return nil, err
	}
	for _, row := range failoverRow.FindAllStringSubmatch(string(text), -1) {
		longest := 0.0 // of its strategies
		for text := range strings.SplitSeq(row[3], " | ") {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, err
			}
			longest = max(longest, seconds)
		}
		all = append(all, Failover{row[1], row[2], longest})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no failover", engines)
	}
	return all, nil
}

//go:embed scale.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"count":   count,
	"percent": func(x float64) string { return fmt.Sprintf("%+.0f %%", 100*x) },
	"share":   func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) },
	"us":      func(x float64) string { return fmt.Sprintf("%.0f", 1e6*x) },
	"ms":      func(x float64) string { return fmt.Sprintf("%.1f", x) },
	"digits":  func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) },
	"mul":     func(x, y float64) float64 { return x * y },
	"div":     func(x, y float64) float64 { return x / y },
}).Parse(pageText))

// count writes a number of orders for people. No figure here is better than two digits.
func count(x float64) string {
	if x <= 0 || math.IsNaN(x) {
		return "-"
	}
	unit := math.Pow10(max(0, int(math.Log10(x))-1))
	text := fmt.Sprintf("%.0f", math.Round(x/unit)*unit)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Page returns the page.
func (s Study) Page() (string, error) {
	var b strings.Builder
	err := pageTemplate.Execute(&b, map[string]any{
		"S": s, "Fleets": fleets, "Network": network, "Catalogue": catalogue, "PerMachine": perMachine, "PerWriter": perWriter,
	})
	return b.String(), err
}

// write writes the page, and the chart if the model holds. Otherwise there is no chart.
func (s Study) write(docs string) error {
	page, err := s.Page()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, pageFile), []byte(page), 0o644); err != nil { //nolint:gosec // to be read
		return err
	}
	chart := filepath.Join(docs, chartFile)
	if !s.Holds() {
		return os.RemoveAll(chart)
	}
	return os.WriteFile(chart, []byte(s.chart()), 0o644) //nolint:gosec // to be read
}
