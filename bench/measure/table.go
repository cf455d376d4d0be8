package measure

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// Table is a title, a header and rows. The first column is text.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
}

// Add adds a row.
func (t *Table) Add(columns ...string) { t.Rows = append(t.Rows, columns) }

// Text writes the table for a terminal.
func (t *Table) Text(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n\n", t.Title)
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		fmt.Fprintln(aligned, "  "+strings.Join(row, "\t"))
	}
	return aligned.Flush()
}

// Markdown returns t for the template.
func (t *Table) Markdown() string {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(t.Header)
	b.WriteString("|---" + strings.Repeat("|--:", len(t.Header)-1) + "|\n")
	for _, r := range t.Rows {
		row(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Count writes a number of things or of things per second.
func Count(v float64) string {
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

// Took writes microseconds.
func Took(us float64) string {
	switch {
	case math.IsNaN(us):
		return "-"
	case us < 0:
		return "-" + Took(-us)
	case us < 1000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1f ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}

// Times writes a ratio.
func Times(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return "∞"
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Micros writes microseconds with one digit more than Took.
func Micros(us float64) string {
	if math.IsNaN(us) {
		return "-"
	}
	return fmt.Sprintf("%.1f µs", us)
}

// Verdict says whether a target is reached.
func Verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "missed"
}
