package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A model that misses one load by more than it may has no chart.
func TestModelThatMissesHasNoChart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, dir := range []string{"explanation", "benchmarks/results"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, engines), []byte("| galera | node killed | 9 | 9 | 0 | 6.9 |\n| x | killed | 9 | 8 | 1 | 3.0 |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Study{Costs: costs, Predicted: []Prediction{{Load: predicted[0], Error: 0.05}, {Load: predicted[1], Error: -0.15}}}
	s.Futures = futures(costs, 0.01, []int{1})
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
