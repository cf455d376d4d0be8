package lab

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// phrase is a line of texts/runs.zh.txt: what runs say in English, with a group for each {n}, and the same in Chinese.
type phrase struct {
	english string
	form    *regexp.Regexp
	chinese string
}

var (
	phraseForm = regexp.MustCompile(`(?m)^- (.+)\n  (.+)$`)
	holeForm   = regexp.MustCompile(`\{\d\}`)
	quotedHole = regexp.MustCompile(`\\\{\d\\\}`)
)

// phrases are all lines, those with the most text before those that fit more.
var phrases = sync.OnceValue(func() (all []phrase) {
	for _, m := range phraseForm.FindAllStringSubmatch(textOf("runs.zh.txt"), -1) {
		form := "^" + quotedHole.ReplaceAllString(regexp.QuoteMeta(m[1]), "(.+?)") + "$"
		all = append(all, phrase{m[1], regexp.MustCompile(form), m[2]})
	}
	slices.SortStableFunc(all, func(a, b phrase) int {
		return cmp.Compare(len(holeForm.ReplaceAllString(b.english, "")), len(holeForm.ReplaceAllString(a.english, "")))
	})
	return all
})

// inChinese translates what a run says: a step, a finding, or a text of its picture. What differs from run to run is translated by
// itself. Names, numbers and statements are the same in both languages.
func inChinese(text string) string {
	best, least := text, english(text)+1 // a text of names alone may have a sign between them
	for _, p := range phrases() {
		if least == 0 {
			break
		}
		found := p.form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		var holes []string
		for i, hole := range found[1:] {
			holes = append(holes, fmt.Sprintf("{%d}", i+1), inChinese(hole))
		}
		if said := strings.NewReplacer(holes...).Replace(p.chinese); english(said) < least {
			best, least = said, english(said)
		}
	}
	return best
}

// english counts the letters of a text that names of one letter and SQL do not have.
func english(text string) (letters int) {
	for _, r := range text {
		if 'a' <= r && r <= 'z' {
			letters++
		}
	}
	return letters
}

// Chinese returns the step in Chinese.
func (e Event) Chinese() Event { return Event{e.At, inChinese(e.Text)} }

// Chinese returns the verdict of the result in Chinese, without steps, figures and picture.
func (r Result) Chinese() Result {
	translated := func(all []Finding) (in []Finding) {
		for _, f := range all {
			in = append(in, Finding{f.OK, inChinese(f.Text)})
		}
		return in
	}
	return Result{
		Number: r.Number, Name: r.Name, Verdict: r.Verdict, Reason: inChinese(r.Reason), Took: r.Took,
		Effects: translated(r.Effects), Cures: translated(r.Cures),
	}
}

var svgText = regexp.MustCompile(`(aria-label="|<title>|<text[^>]*>(?:\w  \d+ ms: )?)([^<"]*)`)

// ChineseSVG returns the SVG of a picture with its texts in Chinese, each at its place.
func ChineseSVG(svg string) string {
	return svgText.ReplaceAllStringFunc(svg, func(part string) string {
		m := svgText.FindStringSubmatch(part)
		return m[1] + html.EscapeString(inChinese(html.UnescapeString(m[2])))
	})
}

var (
	// frameForm is what surrounds the texts of a step, a finding, a figure or a picture on a page.
	frameForm      = regexp.MustCompile(`^ *[\d.]+ ms  |^(?:ok|NO)  (?:effect|cure)  +|^!\[|\]\([\w-]+\.svg\)$|^\| | \| | \|$`)
	frameInChinese = strings.NewReplacer("effect", "现象", "cure  ", "解决", ".svg", ".zh.svg")
)

// lineInChinese translates a line of what a page says of a run.
func lineInChinese(line string) string {
	var b strings.Builder
	at := 0
	for _, f := range frameForm.FindAllStringIndex(line, -1) {
		b.WriteString(inChinese(line[at:f[0]]) + frameInChinese.Replace(line[f[0]:f[1]]))
		at = f[1]
	}
	return b.String() + inChinese(line[at:])
}
