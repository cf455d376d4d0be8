package lab

import (
	"fmt"
	"io"
	"strings"
)

// Intro writes what one reads before the run.
func (l Lab) Intro(w io.Writer) {
	fmt.Fprintf(w, "Lab %d: %s\n\nQuestion  %s\nExpect    %s\n\n", l.Number, l.Title, fill(l.Question, 10), fill(l.Expect, 10))
}

// Report writes what one reads after the run: figures, picture, verdict, why, and the cure.
func (l Lab) Report(w io.Writer, r Result) {
	if len(r.Measured) > 0 {
		fmt.Fprintln(w, "\nMeasured")
		for _, m := range r.Measured {
			fmt.Fprintf(w, "  %-50s %s\n", m.Name, m)
		}
	}
	if r.Picture != nil {
		fmt.Fprintf(w, "\n%s", r.Picture.Text())
	}
	fmt.Fprintf(w, "\nVerdict   %s%s (%.1f s)\n", r.Verdict, reason(r), r.Took/1000)
	for _, f := range r.findings() {
		fmt.Fprintf(w, "  %s\n", f)
	}
	fmt.Fprintf(w, "\nWhy       %s\nCure      %s\n", fill(l.Why, 10), fill(l.Cure, 10))
	for _, link := range l.Links {
		fmt.Fprintf(w, "          %s: %s\n", link.Text, link.Path)
	}
	fmt.Fprintln(w, "Read")
	for _, r := range l.Read {
		fmt.Fprintf(w, "  %s\n      %s\n      %s\n", r.Work, r.Address, fill(r.Claim, 6))
	}
	fmt.Fprintf(w, "Exercises (docs/labs/solutions/%s.md)\n", l.File())
	for i, e := range l.Exercises {
		fmt.Fprintf(w, "  %d. %s\n", i+1, fill(fmt.Sprintf("(%s, %d min, %s) %s", e.Level, e.Minutes, e.Begin, e.Text), 5))
	}
}

func reason(r Result) string {
	if r.Reason == "" {
		return ""
	}
	return ": " + r.Reason
}

// findings are the lines of the verdict.
func (r Result) findings() (lines []string) {
	add := func(name string, all []Finding) {
		for _, f := range all {
			sign := "ok"
			if !f.OK {
				sign = "NO"
			}
			lines = append(lines, fmt.Sprintf("%s  %-6s  %s", sign, name, f.Text))
		}
	}
	add("effect", r.Effects)
	add("cure", r.Cures)
	return lines
}

// fill breaks a text into lines of 100 characters, of which all but the first are indented.
func fill(s string, indent int) string {
	var b strings.Builder
	at := indent
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
		case at+1+len(word) > 100:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

// singular is how units are called if there is one of them.
var singular = map[string]string{"units": "unit", "orders": "order", "processes": "process", "customers": "customer", "requests": "request", "tickets": "ticket", "entries": "entry"}

// String is the figure with its unit.
func (m Measured) String() string {
	unit := m.Unit
	if one, ok := singular[unit]; ok && m.Value == 1 {
		unit = one
	}
	return figure(m.Value) + " " + unit
}

// String is the step as one line.
func (e Event) String() string { return fmt.Sprintf("%8.1f ms  %s", e.At, e.Text) }
