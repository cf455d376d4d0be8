package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File returns the name of the page of a lab, without its ending.
func (l Lab) File() string { return fmt.Sprintf("%02d-%s", l.Number, l.Name) }

// Write writes the pages of a lab, and its pictures, into a folder of docs.
func (l Lab) Write(folder string, r Result) error {
	files := l.pages(l.happened(r))
	if r.Picture != nil {
		files[l.File()+".svg"] = r.Picture.SVG()
		files[l.File()+".zh.svg"] = ChineseSVG(r.Picture.SVG())
	}
	return write(folder, files)
}

func write(folder string, files map[string]string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
	}
	return nil
}

const (
	runBegins = "```\n\n!["
	runEnds   = "\n## Why\n"
)

// Refresh returns the pages of a lab by file name, with the texts of today and the run that its English page shows.
func (l Lab) Refresh(page string) (map[string]string, error) {
	_, run, begins := strings.Cut(page, runBegins)
	run, _, ends := strings.Cut(run, runEnds)
	if !begins || !ends {
		return nil, fmt.Errorf("the page of %s shows no run", l.Name)
	}
	return l.pages("![" + run), nil
}

// language is one in which pages are written.
type language struct {
	ending string // of its pages
	words  func(l Lab) Words
	say    func(text string) string
	line   func(line string) string // of what happened in a run
}

func inEnglish(text string) string { return text }

var languages = []language{
	{".md", func(l Lab) Words { return l.Words }, inEnglish, inEnglish},
	{".zh.md", Lab.Chinese, inChinese, lineInChinese},
}

// pages are the pages of a lab by file name, with what happened in a run.
func (l Lab) pages(happened string) map[string]string {
	all := make(map[string]string)
	for _, in := range languages {
		all[l.File()+in.ending] = l.page(in, happened)
	}
	return all
}

// page is a page of a lab with what happened in a run, which is in English.
func (l Lab) page(in language, happened string) string {
	w, say := in.words(l), in.say
	var b strings.Builder
	para := func(format string, args ...any) { fmt.Fprintf(&b, say(format)+"\n\n", args...) }
	para("# Lab %d: %s", l.Number, w.Title)
	para("[Chinese](%s.zh.md)", l.File())
	para("**Question.** %s", w.Question)
	para("**Expect.** %s", w.Expect)
	fmt.Fprintf(&b, "```\ngo run ./cmd/shop lab run %s\n```\n\n", l.Name)
	for line := range strings.Lines(happened) {
		b.WriteString(in.line(strings.TrimSuffix(line, "\n")) + "\n")
	}
	b.WriteByte('\n')
	para("## Why")
	b.WriteString(w.Why + "\n\n")
	para("## The cure")
	b.WriteString(w.Cure + "\n\n")
	for _, link := range l.Links {
		text := link.Text
		if in.ending != ".md" { // it is there in English alone
			text = "`" + link.Path + "`"
		}
		fmt.Fprintf(&b, "- [%s](../../%s)\n", text, link.Path)
	}
	b.WriteByte('\n')
	para("## Read")
	for _, r := range w.Read {
		fmt.Fprintf(&b, "- %s: [%s](%s), %s. %s\n", r.Author, r.Title, r.Address, r.Year, r.Claim)
	}
	b.WriteByte('\n')
	para("Venues are in the [bibliography](../bibliography.md).")
	para("## Exercises")
	for i, e := range w.Exercises {
		fmt.Fprintf(&b, "%d. "+say("*%s, %d min, begin with `%s`.*")+" %s\n", i+1, e.Level, e.Minutes, e.Begin, e.Text)
	}
	fmt.Fprintf(&b, "\n"+say("[Solutions](solutions/%s.md)")+"\n", l.File())
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

// Index are the pages that list all labs, by file name.
func Index() map[string]string {
	all := make(map[string]string)
	for _, in := range languages {
		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n\n%s\n\n", in.say("Labs"), in.say("[Chinese](index.zh.md)"))
		fmt.Fprintf(&b, "%s\n\n%s\n", in.say("Each lab answers one question with a run on real processes and servers, a picture and a verdict."),
			in.say("Run one with `go run ./cmd/shop lab run NAME`."))
		b.WriteString(in.say("A lab takes less than 30 s; on a busy machine it places fewer orders, and may take longer.") + "\n")
		b.WriteString(in.say("Labs use Redis and MariaDB if they are installed (`make servers`). Without a server that it needs, a lab is inconclusive.") + "\n")
		b.WriteString(in.say("`make labs` runs all of them and writes these pages. `go run ./cmd/shop lab` runs them in the browser, step by step.") + "\n\n")
		b.WriteString(in.say("| | name | lab | question | needs |") + "\n|---:|---|---|---|---|\n")
		for _, l := range All() {
			w := in.words(l)
			fmt.Fprintf(&b, "| %d | `%s` | [%s](%s) | %s | %s |\n", l.Number, l.Name, w.Title, l.File()+in.ending, w.Question, strings.Join(l.Needs, ", "))
		}
		all["index"+in.ending] = b.String()
	}
	return all
}

// WriteIndex writes the pages that list all labs.
func WriteIndex(folder string) error { return write(folder, Index()) }

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
