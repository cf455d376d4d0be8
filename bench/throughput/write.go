package throughput

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed throughput.md.tmpl
var page string

//go:embed throughput.svg.tmpl
var chart string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"count": count, "cpu": cpu, "percent": percent, "books": books,
}).New("page").Parse(page))

// Markdown returns the report as a page.
func (r Report) Markdown() string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, "page", r); err != nil {
		return err.Error() // a mistake in the template, which every test of it shows
	}
	return b.String()
}

// Write writes throughput.md, throughput.json and throughput.svg into a folder, which it makes.
func (r Report) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // to be read
		return err
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	svg, err := r.SVG()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"throughput.md": r.Markdown(), "throughput.json": string(raw) + "\n", "throughput.svg": svg} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { //nolint:gosec // to be read
			return err
		}
	}
	return nil
}

// bar is one line of the chart, in its units.
type bar struct {
	Y, Width       int
	Label, Value   string
	Text           int // where the value begins
	Color, Verdict string
}

// SVG returns the orders per second as a chart: red if an invariant is violated.
func (r Report) SVG() (string, error) {
	const rowHeight, longest = 30, 560
	most := 1.0
	for _, a := range r.Variants {
		most = max(most, a.OrdersPerSecond)
	}
	var bars []bar
	for i, a := range r.Variants {
		one := bar{
			Y: 60 + i*rowHeight, Width: max(1, int(a.OrdersPerSecond/most*longest)), Label: a.Strategy,
			Value: count(a.OrdersPerSecond) + "/s", Color: "#2f7d4f", Verdict: "exact",
		}
		if !a.AuditOK || a.Oversold > 0 {
			one.Color, one.Verdict = "#b3392f", "invariants violated"
		}
		one.Text = 170 + one.Width + 8
		bars = append(bars, one)
	}
	t, err := template.New("chart").Parse(chart)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{"Bars": bars, "Height": 80 + len(bars)*rowHeight, "Load": r.Load})
	return b.String(), err
}

// count writes a number for people.
func count(x float64) string {
	text := fmt.Sprintf("%.0f", x)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// cpu writes the processor time of an order by kind of process.
func cpu(used map[string]float64) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(used)) {
		parts = append(parts, fmt.Sprintf("%s %.0f", kind, used[kind]*1000))
	}
	return strings.Join(parts, ", ")
}

// percent is how much of a limit a variant reaches.
func percent(x, limit float64) string {
	if limit == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*x/limit)
}

// books says what the audit found.
func books(a Variant) string {
	switch {
	case a.AuditOK && a.Oversold == 0 && a.Undersold == 0:
		return "exact"
	default:
		return fmt.Sprintf("oversold %d, %d updates lost", a.Oversold, a.LostUpdates)
	}
}
