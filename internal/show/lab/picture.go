package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind says what a part of a picture means. It decides about the color.
type Kind string

// The kinds. Each has a sign of its own in text, so that nobody needs colors.
const (
	Holds   Kind = "holds"   // a lease that is valid, or what is as it should be
	Stale   Kind = "stale"   // a lease that has expired while its holder considers it valid, or what is wrong
	Waits   Kind = "waits"   // somebody waits
	Paused  Kind = "paused"  // a process that does not run
	Neutral Kind = "neutral" // none of these
)

// Legend says what the kinds of one picture mean.
type Legend map[Kind]string

// Picture is a timeline, or bars.
type Picture struct {
	Title string `json:"title"`

	Legend Legend `json:"legend"`

	Rows []Row  `json:"rows,omitempty"` // of a timeline
	Bars []Bar  `json:"bars,omitempty"`
	Unit string `json:"unit,omitempty"` // of the bars

	began time.Time // of the run
}

// Row is one line of a timeline, such as a process.
type Row struct {
	Name  string `json:"name"`
	Spans []Span `json:"spans,omitempty"`
	Marks []Mark `json:"marks,omitempty"`

	later time.Duration // by how much it happened later than it is drawn
}

// Span is something that lasts.
type Span struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Kind  Kind      `json:"kind"`
	Label string    `json:"label,omitempty"`
	Token string    `json:"token,omitempty"` // the fencing token of which Label has the ordinal
}

// Mark is something that happens at one moment.
type Mark struct {
	At    time.Time `json:"at"`
	Kind  Kind      `json:"kind"` // Stale for what was refused or is wrong
	Label string    `json:"label"`
}

// Bar is one figure.
type Bar struct {
	Label string  `json:"label"`
	Value float64 `json:"value"`
	Kind  Kind    `json:"kind"`
}

// row returns the row with a name, which it adds if there is none.
func (p *Picture) row(name string) *Row {
	i := slices.IndexFunc(p.Rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		p.Rows = append(p.Rows, Row{Name: name})
		i = len(p.Rows) - 1
	}
	return &p.Rows[i]
}

// Span adds a span to the row with that name.
func (p *Picture) Span(row string, from, until time.Time, kind Kind, label string) {
	r := p.row(row)
	r.Spans = append(r.Spans, Span{From: from, Until: until, Kind: kind, Label: label})
}

// Mark adds a mark to the row with that name.
func (p *Picture) Mark(row string, at time.Time, kind Kind, label string) {
	r := p.row(row)
	r.Marks = append(r.Marks, Mark{at, kind, label})
}

// Token says which fencing token the latest span of a row has.
func (p *Picture) Token(row, token string) {
	r := p.row(row)
	r.Spans[len(r.Spans)-1].Token = token
}

// hover is what a pointer on the span shows.
func (s Span) hover() string {
	if s.Token == "" {
		return s.Label
	}
	return "fencing token " + s.Token
}

// hasTokens reports whether a span has a fencing token.
func (p *Picture) hasTokens() bool {
	return slices.ContainsFunc(p.Rows, func(r Row) bool { return slices.ContainsFunc(r.Spans, func(s Span) bool { return s.Token != "" }) })
}

// kinds are those that the picture has, in one order.
func (p *Picture) kinds() []Kind {
	return slices.DeleteFunc([]Kind{Holds, Stale, Waits, Paused, Neutral}, func(k Kind) bool {
		return !slices.ContainsFunc(p.Bars, func(b Bar) bool { return b.Kind == k }) && !slices.ContainsFunc(p.Rows, func(r Row) bool {
			return slices.ContainsFunc(r.Spans, func(s Span) bool { return s.Kind == k }) || slices.ContainsFunc(r.Marks, func(m Mark) bool { return m.Kind == k })
		})
	})
}

// ends reports whether row i is the last of those that have one time. The time of the run is written below it.
func (p *Picture) ends(i int) bool { return i+1 == len(p.Rows) || p.Rows[i+1].later != p.Rows[i].later }

// Later says that a row happened later than it is drawn: parts of a run lie below each other, each drawn from its own
// beginning.
func (p *Picture) Later(row string, by time.Duration) { p.row(row).later = by }

// moment returns when something happened that a row has at a time, in milliseconds since the run began.
func (p *Picture) moment(r Row, at, first time.Time) float64 {
	began := p.began
	if began.IsZero() {
		began = first
	}
	return milliseconds(at.Add(r.later).Sub(began))
}

// bounds returns the first and the last moment of a timeline.
func (p *Picture) bounds() (first, last time.Time) {
	var all []time.Time
	for _, r := range p.Rows {
		for _, s := range r.Spans {
			all = append(all, s.From, s.Until)
		}
		for _, m := range r.Marks {
			all = append(all, m.At)
		}
	}
	if len(all) == 0 {
		return first, last
	}
	return slices.MinFunc(all, time.Time.Compare), slices.MaxFunc(all, time.Time.Compare)
}

// columns is the width of a timeline in text.
const columns = 72

var signs = map[Kind]rune{Holds: '=', Stale: '!', Waits: '.', Paused: '~', Neutral: '-'}

// Text draws the picture for a terminal.
func (p *Picture) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", p.Title)
	if len(p.Bars) > 0 {
		p.textBars(&b)
		return b.String()
	}
	first, last := p.bounds()
	whole := max(last.Sub(first), time.Millisecond)
	column := func(at time.Time) int { return int(int64(columns-1) * int64(at.Sub(first)) / int64(whole)) }
	wide := 0
	for _, r := range p.Rows {
		wide = max(wide, utf8.RuneCountInString(r.Name))
	}
	for i, r := range p.Rows {
		line := []rune(strings.Repeat(" ", columns))
		for _, s := range r.Spans {
			from, until := column(s.From), column(s.Until)
			for i := from; i <= until; i++ {
				line[i] = signs[s.Kind]
			}
			for i, c := range []rune(s.Label) {
				if at := from + 2 + i; at < until {
					line[at] = c
				}
			}
		}
		for i, m := range r.Marks {
			line[column(m.At)] = rune('a' + i)
		}
		fmt.Fprintf(&b, "%-*s |%s|\n", wide, r.Name, string(line))
		for i, m := range r.Marks {
			fmt.Fprintf(&b, "%-*s   %c %7.1f ms  %s\n", wide, "", 'a'+i, p.moment(r, m.At, first), m.Label)
		}
		if p.ends(i) {
			from := fmt.Sprintf("%.0f ms", p.moment(r, first, first))
			fmt.Fprintf(&b, "%-*s |%s%*s|\n", wide, "", from, columns-len(from), fmt.Sprintf("%.0f ms", p.moment(r, first.Add(whole), first)))
		}
	}
	p.textLegend(&b)
	return b.String()
}

func (p *Picture) textLegend(b *strings.Builder) {
	for _, k := range p.kinds() {
		fmt.Fprintf(b, "  %c %s\n", signs[k], p.Legend[k])
	}
}

func (p *Picture) textBars(b *strings.Builder) {
	wide, most := 0, 0.0
	for _, bar := range p.Bars {
		wide, most = max(wide, utf8.RuneCountInString(bar.Label)), max(most, bar.Value)
	}
	for _, bar := range p.Bars {
		n := 0
		if most > 0 {
			n = int(48 * bar.Value / most)
		}
		fmt.Fprintf(b, "%-*s |%s %s %s\n", wide, bar.Label, strings.Repeat(string(signs[bar.Kind]), n), figure(bar.Value), p.Unit)
	}
	p.textLegend(b)
}

// figure writes a value with the digits that one reads.
func figure(v float64) string {
	if v == float64(int64(v)) || v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
