package main

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the page and the chart from their results")

const docs = "../../docs"

// The page and the chart show the stored results, and those of the report on engines. The model of today has these results.
func TestPageShowsTheResultsOfTheModel(t *testing.T) {
	t.Parallel()
	s, err := read(docs)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := s.write(docs); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Page()
	if err != nil {
		t.Fatal(err)
	}
	const again = "go test ./scale -update, or go run ./scale if the model has changed, writes it again"
	if stored, err := os.ReadFile(filepath.Join(docs, pageFile)); err != nil || string(stored) != page {
		t.Errorf("%s is not what its results say (%v): %s", pageFile, err, again)
	}
	stored, err := os.ReadFile(filepath.Join(docs, chartFile))
	switch {
	case s.Holds() && string(stored) != s.chart():
		t.Errorf("%s is not what its results say (%v): %s", chartFile, err, again)
	case !s.Holds() && !errors.Is(err, fs.ErrNotExist):
		t.Errorf("the model misses measured runs, and there is a chart: %v", err)
	}
	for _, p := range s.predict(s.ByRound, predicted[:3], 2) {
		i := slices.IndexFunc(s.Predicted, func(stored Prediction) bool { return stored.Load == p.Load })
		near(t, "orders/s of the model", p.Model, s.Predicted[i].Model, 0.01)
	}
}

// A model that misses one load by more than it may has no chart.
func TestModelThatMissesHasNoChart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, dir := range []string{"explanation", "benchmarks/results"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, engines), []byte("| galera | node killed | 9 | 9 | 0 | 1.0 | 6.9 | 2.5 |\n| x | killed | 9 | 8 | 1 | 3.0 | 3.0 | 3.0 |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Study{Costs: costs, Predicted: []Prediction{{Load: predicted[0], Error: 0.05}, {Load: predicted[1], Error: -0.15}}}
	s.Futures = futures(costs, 0.001, 0.01, []int{1})
	var err error
	if s.Failovers, err = failovers(folder); err != nil || len(s.Failovers) != 1 || s.Failovers[0].Seconds != 6.9 {
		t.Fatalf("%+v: %v", s.Failovers, err)
	}
	for _, want := range []bool{true, false} {
		if !want {
			s.Predicted[1].Error = -0.16
		}
		if err := s.write(folder); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(folder, chartFile))
		page, _ := os.ReadFile(filepath.Join(folder, pageFile))
		if shown := strings.Contains(string(page), "![Simulated"); s.Holds() != want || shown != want || (err == nil) != want {
			t.Errorf("with %v: holds %v, the page has a chart: %v, and its file: %v", s.Predicted, s.Holds(), shown, err)
		}
		if text := string(page); strings.Contains(text, "does not hold") == want || !strings.Contains(text, "| 6.9 | 20.7 |") || strings.Contains(text, "3.0 |") {
			t.Errorf("%s", text)
		}
	}
}
