package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	fmt.Fprintln(w, "Exercises")
	for i, e := range l.Exercises {
		fmt.Fprintf(w, "  %d. %s\n", i+1, fill(e, 5))
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

// File returns the name of the page of a lab, without its ending.
func (l Lab) File() string { return fmt.Sprintf("%02d-%s", l.Number, l.Name) }

// Write writes the page of a lab, and its picture, into a folder of docs.
func (l Lab) Write(folder string, r Result) error {
	if r.Picture != nil {
		if err := os.WriteFile(filepath.Join(folder, l.File()+".svg"), []byte(r.Picture.SVG()), 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, l.File()+".md"), []byte(l.page(r)), 0o644) //nolint:gosec // for everybody to read
}

func (l Lab) page(r Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Lab %d: %s\n\n", l.Number, l.Title)
	fmt.Fprintf(&b, "**Question.** %s\n\n**Expect.** %s\n\n```\ngo run ./cmd/shop lab run %s\n```\n\n", l.Question, l.Expect, l.Name)
	if r.Picture != nil {
		fmt.Fprintf(&b, "![%s](%s.svg)\n\n", r.Picture.Title, l.File())
	}
	b.WriteString("## What happened\n\nThe output of one run:\n\n```\n")
	for _, s := range r.Steps {
		fmt.Fprintln(&b, s)
	}
	b.WriteString("```\n\n")
	if len(r.Measured) > 0 {
		b.WriteString("| measured | |\n|---|---:|\n")
		for _, m := range r.Measured {
			fmt.Fprintf(&b, "| %s | %s |\n", m.Name, m)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "Verdict: **%s**%s\n\n```\n%s\n```\n\n", r.Verdict, reason(r), strings.Join(r.findings(), "\n"))
	fmt.Fprintf(&b, "## Why\n\n%s\n\n## The cure\n\n%s\n\n", l.Why, l.Cure)
	for _, link := range l.Links {
		fmt.Fprintf(&b, "- [%s](../../%s)\n", link.Text, link.Path)
	}
	b.WriteString("\n## Exercises\n\n")
	for i, e := range l.Exercises {
		fmt.Fprintf(&b, "%d. %s\n", i+1, e)
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

// WriteIndex writes the page that lists all labs.
func WriteIndex(folder string) error {
	var b strings.Builder
	b.WriteString("# Labs\n\nEach lab answers one question with a run on real processes and servers, a picture and a verdict. Run one with\n" +
		"`go run ./cmd/shop lab run NAME`. A lab takes less than 30 s. Labs use Redis and MariaDB if they are installed (`make servers`). Without a server that\nit needs, a lab is inconclusive. `make labs` runs all of them and writes these pages. `go run ./cmd/shop lab` runs\nthem in the browser, step by step.\n\n| | name | lab | question | needs |\n|---:|---|---|---|---|\n")
	for _, l := range All() {
		fmt.Fprintf(&b, "| %d | `%s` | [%s](%s.md) | %s | %s |\n", l.Number, l.Name, l.Title, l.File(), l.Question, strings.Join(l.Needs, ", "))
	}
	return os.WriteFile(filepath.Join(folder, "index.md"), []byte(b.String()), 0o644) //nolint:gosec // for everybody to read
}
