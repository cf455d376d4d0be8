package lab

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// File returns the name of the page of a lab, without its ending.
func (l Lab) File() string { return fmt.Sprintf("%02d-%s", l.Number, l.Name) }

// Write writes the page of a lab, and its picture in both languages, into a folder of docs.
func (l Lab) Write(folder string, r Result) error {
	files := map[string]string{".md": l.page(l.happened(r))}
	if r.Picture != nil {
		files[".svg"] = r.Picture.SVG()
		files[".zh.svg"] = ChineseSVG(files[".svg"])
	}
	for ending, text := range files {
		if err := os.WriteFile(filepath.Join(folder, l.File()+ending), []byte(text), 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
	}
	return nil
}

const (
	runBegins = "```\n\n!["
	runEnds   = "\n## Why\n"
)

// Refresh returns the page of a lab with the texts of today, and the run that it shows.
func (l Lab) Refresh(page string) (string, error) {
	_, run, begins := strings.Cut(page, runBegins)
	run, _, ends := strings.Cut(run, runEnds)
	if !begins || !ends {
		return "", fmt.Errorf("the page of %s shows no run", l.Name)
	}
	return l.page("![" + run), nil
}

// page is the page of a lab with what happened in a run.
func (l Lab) page(happened string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Lab %d: %s\n\n", l.Number, l.Title)
	fmt.Fprintf(&b, "**Question.** %s\n\n**Expect.** %s\n\n```\ngo run ./cmd/shop lab run %s\n%s%s%s", l.Question, l.Expect, l.Name, strings.TrimSuffix(runBegins, "!["), happened, runEnds)
	fmt.Fprintf(&b, "\n%s\n\n## The cure\n\n%s\n\n", l.Why, l.Cure)
	for _, link := range l.Links {
		fmt.Fprintf(&b, "- [%s](../../%s)\n", link.Text, link.Path)
	}
	b.WriteString("\n## Read\n\n")
	for _, r := range l.Read {
		fmt.Fprintf(&b, "- %s: [%s](%s), %s. %s\n", r.Author, r.Title, r.Address, r.Year, r.Claim)
	}
	fmt.Fprintf(&b, "\nVenues are in the [bibliography](../bibliography.md).\n\n## Exercises\n\n")
	for i, e := range l.Exercises {
		fmt.Fprintf(&b, "%d. *%s, %d min, begin with `%s`.* %s\n", i+1, e.Level, e.Minutes, e.Begin, e.Text)
	}
	fmt.Fprintf(&b, "\n[Solutions](solutions/%s.md)\n", l.File())
	return b.String()
}

// happened is what the page shows of a run.
func (l Lab) happened(r Result) string {
	var b strings.Builder
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
	fmt.Fprintf(&b, "Verdict: **%s**%s\n\n```\n%s\n```\n", r.Verdict, reason(r), strings.Join(r.findings(), "\n"))
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

// Index is the page that lists all labs.
func Index() string {
	var b strings.Builder
	b.WriteString("# Labs\n\nEach lab answers one question with a run on real processes and servers, a picture and a verdict. Run one with\n" +
		"`go run ./cmd/shop lab run NAME`. A lab takes less than 30 s; on a busy\nmachine it places fewer orders, and may take longer. Labs use Redis and MariaDB if they are installed (`make servers`). Without a server that\nit needs, a lab is inconclusive. `make labs` runs all of them and writes these pages. `go run ./cmd/shop lab` runs\nthem in the browser, step by step.\n\n| | name | lab | question | needs |\n|---:|---|---|---|---|\n")
	for _, l := range All() {
		fmt.Fprintf(&b, "| %d | `%s` | [%s](%s.md) | %s | %s |\n", l.Number, l.Name, l.Title, l.File(), l.Question, strings.Join(l.Needs, ", "))
	}
	return b.String()
}

// WriteIndex writes the page that lists all labs.
func WriteIndex(folder string) error {
	return os.WriteFile(filepath.Join(folder, "index.md"), []byte(Index()), 0o644) //nolint:gosec // for everybody to read
}

// BibliographyPage is the page docs/bibliography.md.
func BibliographyPage() string {
	var b strings.Builder
	b.WriteString("# Bibliography\n\nThe labs cite these works. Each lab says in a sentence what a work claims, and where the lab agrees. `make gen` writes this page.\n\n" +
		"| author | title | venue | year | labs |\n|---|---|---|---:|---|\n")
	for _, w := range bibliography {
		var citing []string
		for _, l := range All() {
			if slices.ContainsFunc(l.Read, func(r Reading) bool { return r.Key == w.Key }) {
				citing = append(citing, fmt.Sprintf("[%d](labs/%s.md)", l.Number, l.File()))
			}
		}
		fmt.Fprintf(&b, "| %s | [%s](%s) | %s | %s | %s |\n", w.Author, w.Title, w.Address, w.Venue, w.Year, strings.Join(citing, ", "))
	}
	return b.String()
}
