package lab

import (
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	svgWidth  = 760
	svgLeft   = 130 // names of rows
	rowHeight = 34
	markLine  = 16
)

// The colors are readable on white and on black, and differ in lightness.
var colors = map[Kind]string{Holds: "#2f7d4f", Stale: "#c62f3a", Waits: "#a8a29e", Paused: "#b7791f", Neutral: "#4477aa"}

// SVG draws the picture. It has no styles, so a page may show it under a strict policy. Each part of a timeline has the
// moments of the run at which it begins and ends, in milliseconds. Each row has a hidden cursor. A page shows the
// picture up to a step by them.
func (p *Picture) SVG() string {
	var b strings.Builder
	height := p.body(&b)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="12">`,
		svgWidth, height, svgWidth, height, html.EscapeString(p.Title)) +
		fmt.Sprintf(`<rect width="%d" height="%d" fill="#ffffff"/><text x="8" y="18" font-weight="bold" fill="#1b1f24">%s</text>`, svgWidth, height, html.EscapeString(p.Title)) +
		b.String() + "</svg>\n"
}

// body draws what is below the title, and returns the height of all.
func (p *Picture) body(b *strings.Builder) (height int) {
	if len(p.Bars) > 0 {
		return p.svgBars(b)
	}
	first, last := p.bounds()
	whole := max(last.Sub(first), time.Millisecond)
	x := func(at time.Time) float64 {
		return svgLeft + (svgWidth-svgLeft-12)*float64(at.Sub(first))/float64(whole)
	}
	y := 30
	for _, r := range p.Rows {
		text(b, 8, y+18, "#1b1f24", r.Name)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="1" fill="#d1d9e0"/>`, svgLeft, y+rowHeight-5, svgWidth-svgLeft-12)
		fmt.Fprintf(b, `<rect data-cursor="%d" data-from="%.1f" data-until="%.1f" x="%d" y="%d" width="2" height="28" fill="#1b1f24" visibility="hidden"/>`,
			svgWidth-svgLeft-12, p.moment(r, first, first), p.moment(r, first.Add(whole), first), svgLeft, y)
		for _, s := range r.Spans {
			wide := max(2, x(s.Until)-x(s.From))
			fmt.Fprintf(b, `<g data-from="%.1f" data-until="%.1f">`, p.moment(r, s.From, first), p.moment(r, s.Until, first))
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="20" rx="3" fill="%s"><title>%s</title></rect>`, x(s.From), y+4, wide, colors[s.Kind], html.EscapeString(s.hover()))
			if wide > float64(7*utf8.RuneCountInString(s.Label)) {
				text(b, x(s.From)+4, y+18, "#ffffff", s.Label)
			}
			b.WriteString("</g>")
		}
		line := y + rowHeight
		for i, m := range r.Marks {
			fmt.Fprintf(b, `<g data-from="%.1f"><circle cx="%.1f" cy="%d" r="8" fill="#ffffff" stroke="%s" stroke-width="2"/>`, p.moment(r, m.At, first), x(m.At), y+14, colors[m.Kind])
			text(b, x(m.At)-3, y+18, colors[m.Kind], string(rune('a'+i)))
			text(b, svgLeft, line+11, colors[m.Kind], fmt.Sprintf("%c  %.0f ms: %s", 'a'+i, milliseconds(m.At.Sub(first)), m.Label))
			b.WriteString("</g>")
			line += markLine
		}
		y = line + 4
	}
	text(b, svgLeft, y+14, "#59636e", "0 ms")
	text(b, svgWidth-80, y+14, "#59636e", fmt.Sprintf("%.0f ms", milliseconds(whole)))
	at := svgLeft + 60
	for _, k := range []Kind{Holds, Stale, Waits, Paused} {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" rx="2" fill="%s"/>`, at, y+4, colors[k])
		text(b, float64(at+16), y+14, "#59636e", string(k))
		at += 80
	}
	if p.hasTokens() {
		text(b, at, y+14, "#59636e", "#n: the nth grant")
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
		wide := 0.0
		if most > 0 {
			wide = float64(svgWidth-left-140) * bar.Value / most
		}
		text(b, 8, y+15, "#1b1f24", bar.Label)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="18" rx="2" fill="%s"/>`, left, y+2, max(1, wide), colors[bar.Kind])
		text(b, float64(left)+wide+8, y+15, "#1b1f24", figure(bar.Value)+" "+p.Unit)
		y += 26
	}
	return y + 8
}

func text[N int | float64](b *strings.Builder, x N, y int, color, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="%s">%s</text>`, float64(x), y, color, html.EscapeString(s))
}
