package lab

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	svgWidth   = 760
	svgLeft    = 130 // names of rows
	rowHeight  = 34
	markLine   = 16
	markRadius = 8
	leastBar   = 4.0 // so that one can see it
	letter     = 6.6 // about as wide as a letter is
	textColor  = "#1b1f24"
	mutedColor = "#59636e"
)

// The colors are readable on white and on black, and differ in lightness.
var colors = map[Kind]string{Holds: "#2f7d4f", Stale: "#c62f3a", Waits: "#6e6963", Paused: "#8f5c12", Neutral: "#4477aa"}

// SVG draws the picture. It has no styles, so a page may show it under a strict policy. Each part of a timeline has the
// moments of the run at which it begins and ends, in milliseconds. Each row has a hidden cursor. A page shows the
// picture up to a step by them.
func (p *Picture) SVG() string {
	var b strings.Builder
	title, height := html.EscapeString(p.Title), p.body(&b)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="12">`,
		svgWidth, height, svgWidth, height, title) +
		fmt.Sprintf(`<rect width="%d" height="%d" fill="#ffffff"/><text x="8" y="18" font-weight="bold" fill="#1b1f24">%s</text>`, svgWidth, height, title) +
		b.String() + "</svg>\n"
}

// body draws what is below the title, and returns the height of all.
func (p *Picture) body(b *strings.Builder) (height int) {
	if len(p.Bars) > 0 {
		return p.svgBars(b)
	}
	c := p.canvas()
	y := 30
	for i, r := range p.Rows {
		y = c.row(b, r, y)
		if p.ends(i) {
			until := fmt.Sprintf("%.0f ms", p.moment(r, c.first.Add(c.whole), c.first))
			text(b, c.left, y+8, mutedColor, fmt.Sprintf("%.0f ms", p.moment(r, c.first, c.first)))
			text(b, svgWidth-12-wide(until), y+8, mutedColor, until)
			y += 20
		}
	}
	return p.svgLegend(b, y)
}

// canvas maps times of a picture to places.
type canvas struct {
	*Picture

	first time.Time
	whole time.Duration
	left  int // of the timeline; names of rows are left of it
}

func (p *Picture) canvas() canvas {
	first, last := p.bounds()
	c := canvas{p, first, max(last.Sub(first), time.Millisecond), svgLeft}
	for _, r := range p.Rows {
		c.left = max(c.left, 16+int(wide(r.Name)))
	}
	return c
}

func (c canvas) long() int { return svgWidth - c.left - 12 }

func (c canvas) x(at time.Time) float64 {
	return float64(c.left) + float64(c.long())*float64(at.Sub(c.first))/float64(c.whole)
}

// row draws a row at y, and returns where the next one begins.
func (c canvas) row(b *strings.Builder, r Row, y int) int {
	text(b, 8, y+18, textColor, r.Name)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="1" fill="#d1d9e0"/>`, c.left, y+rowHeight-5, c.long())
	fmt.Fprintf(b, `<rect data-cursor="%d" data-from="%.1f" data-until="%.1f" x="%d" y="%d" width="2" height="28" fill="#1b1f24" visibility="hidden"/>`,
		c.long(), c.moment(r, c.first, c.first), c.moment(r, c.first.Add(c.whole), c.first), c.left, y)
	marks := c.places(r)
	for i, s := range r.Spans {
		x, long := c.x(s.From), max(leastBar, c.x(s.Until)-c.x(s.From))
		fmt.Fprintf(b, `<g data-from="%.1f" data-until="%.1f">`, c.moment(r, s.From, c.first), c.moment(r, s.Until, c.first))
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="20" rx="3" fill="%s"><title>%s</title></rect>`, x, y+4, long, colors[s.Kind], html.EscapeString(s.hover()))
		end := float64(svgWidth - 12)
		if i+1 < len(r.Spans) {
			end = c.x(r.Spans[i+1].From)
		}
		if at, fits := gap(x, x+long, marks, s.Label); fits {
			text(b, at, y+18, "#ffffff", s.Label)
		} else if at, fits := gap(x+long, end, marks, s.Label); fits {
			text(b, at, y+18, textColor, s.Label)
		}
		b.WriteString("</g>")
	}
	line := y + rowHeight
	for i, m := range r.Marks {
		fmt.Fprintf(b, `<g data-from="%.1f"><circle cx="%.1f" cy="%d" r="%d" fill="#ffffff" stroke="%s" stroke-width="2"/>`, c.moment(r, m.At, c.first), marks[i], y+14, markRadius, colors[m.Kind])
		text(b, marks[i]-3, y+18, colors[m.Kind], string(rune('a'+i)))
		text(b, c.left, line+11, colors[m.Kind], fmt.Sprintf("%c  %.0f ms: %s", 'a'+i, c.moment(r, m.At, c.first), m.Label))
		b.WriteString("</g>")
		line += markLine
	}
	return line + 4
}

// places are where the marks of a row are drawn: at their times, but alongside each other.
func (c canvas) places(r Row) (all []float64) {
	var order []int
	for i := range r.Marks {
		order = append(order, i)
	}
	all = make([]float64, len(order))
	slices.SortStableFunc(order, func(i, j int) int { return r.Marks[i].At.Compare(r.Marks[j].At) })
	least := 0.0
	for _, i := range order {
		all[i] = max(least, c.x(r.Marks[i].At))
		least = all[i] + 2*markRadius + 2
	}
	for next, i := float64(svgWidth-markRadius-2), len(order)-1; i >= 0; i-- {
		all[order[i]] = min(all[order[i]], next)
		next = all[order[i]] - 2*markRadius - 2
	}
	return all
}

// gap returns where a label fits between two places without covering a mark.
func gap(from, until float64, marks []float64, label string) (at float64, fits bool) {
	long := wide(label)
	sorted := slices.Sorted(slices.Values(marks))
	at = from + 4
	for _, m := range append(sorted, until+markRadius+2) {
		if m+markRadius < at {
			continue
		}
		if at+long <= min(m-markRadius-2, until) {
			return at, label != ""
		}
		at = m + markRadius + 4
	}
	return 0, false
}

// svgLegend says what each color means that the picture has, and returns the height of all.
func (p *Picture) svgLegend(b *strings.Builder, y int) (height int) {
	x := 8.0
	entry := func(words string, draw func()) {
		long := 34 + wide(words)
		if x > 8 && x+long > svgWidth {
			x, y = 8, y+20
		}
		draw()
		text(b, x+16, y+14, mutedColor, words)
		x += long
	}
	for _, k := range p.kinds() {
		entry(p.Legend[k], func() {
			fmt.Fprintf(b, `<rect data-legend="%s" x="%.1f" y="%d" width="12" height="12" rx="2" fill="%s"/>`, k, x, y+4, colors[k])
		})
	}
	if p.hasTokens() {
		entry("#n: the nth grant", func() {})
	}
	return y + 26
}

func (p *Picture) svgBars(b *strings.Builder) (height int) {
	most := 0.0
	for _, bar := range p.Bars {
		most = max(most, bar.Value)
	}
	y, left := 30, svgLeft+70
	for _, bar := range p.Bars {
		left = max(left, 16+int(wide(bar.Label)))
	}
	for _, bar := range p.Bars {
		long := 0.0
		if most > 0 {
			long = float64(svgWidth-left-140) * bar.Value / most
		}
		text(b, 8, y+15, textColor, bar.Label)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="18" rx="2" fill="%s"/>`, left, y+2, max(leastBar, long), colors[bar.Kind])
		text(b, float64(left)+long+8, y+15, textColor, figure(bar.Value)+" "+p.Unit)
		y += 26
	}
	return p.svgLegend(b, y+4)
}

// wide is about as wide as a text is.
func wide(text string) float64 { return letter * float64(utf8.RuneCountInString(text)) }

func text[N int | float64](b *strings.Builder, x N, y int, color, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="%s">%s</text>`, float64(x), y, color, html.EscapeString(s))
}
