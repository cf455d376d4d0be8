package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// table is a title, a header and rows. The first column is text.
type table struct {
	title  string
	header []string
	rows   [][]string
}

func (t *table) add(columns ...string) { t.rows = append(t.rows, columns) }

func (t *table) text(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n\n", t.title)
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		fmt.Fprintln(aligned, "  "+strings.Join(row, "\t"))
	}
	return aligned.Flush()
}

// Markdown returns t for the template.
func (t *table) Markdown() string {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(t.header)
	b.WriteString("|---" + strings.Repeat("|--:", len(t.header)-1) + "|\n")
	for _, r := range t.rows {
		row(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Title returns the title for the template.
func (t *table) Title() string { return t.title }

// count writes a number of things or of things per second.
func count(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v >= 1e4:
		return fmt.Sprintf("%.1fk", v/1e3)
	case v >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// took writes microseconds.
func took(us float64) string {
	switch {
	case math.IsNaN(us):
		return "-"
	case us < 1000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1f ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}

// times writes a ratio.
func times(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return "∞"
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
