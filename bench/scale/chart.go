package main

import (
	"fmt"
	"math"
	"strings"
)

// The chart has machines from left to right and orders per second upward, both in powers of ten.
const (
	left, right, top, bottom = 80.0, 520.0, 50.0, 400.0
	leastOrders, mostOrders  = 3.0, 7.0 // powers of ten
)

var colors = []string{"#1d1d1f", "#b3392f", "#2f7d4f", "#2558a8", "#a86f12", "#7a3aa0"}

func across10(machines int) float64 {
	return left + math.Log10(float64(machines))/math.Log10(float64(fleets[len(fleets)-1]))*(right-left)
}

func up10(orders float64) float64 {
	return bottom - (math.Log10(max(1, orders))-leastOrders)/(mostOrders-leastOrders)*(bottom-top)
}

// chart returns the simulated orders per second as SVG.
func (s Study) chart() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say(`<svg xmlns="http://www.w3.org/2000/svg" width="960" height="450" viewBox="0 0 960 450" font-family="sans-serif" font-size="13">`)
	say(`  <rect width="960" height="450" fill="#ffffff"/>`)
	say(`  <text x="20" y="28" font-size="18" fill="#1d1d1f">Simulated orders per second, by machines with an instance each</text>`)
	for p := leastOrders; p <= mostOrders; p++ {
		y := up10(math.Pow(10, p))
		say(`  <path d="M%.0f %.1fH%.0f" stroke="#dddddd"/><text x="%.0f" y="%.1f" text-anchor="end" fill="#1d1d1f">%s</text>`,
			left, y, right, left-8, y+4, count(math.Pow(10, p)))
	}
	for _, n := range fleets {
		say(`  <text x="%.1f" y="%.0f" text-anchor="middle" fill="#1d1d1f">%s</text>`, across10(n), bottom+22, count(float64(n)))
	}
	for i, f := range s.Futures {
		var points []string
		for j, r := range f.Results {
			if r.OrdersPerSecond > 0 {
				points = append(points, fmt.Sprintf("%.1f,%.1f", across10(fleets[j]), up10(r.OrdersPerSecond)))
			}
		}
		say(`  <polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), colors[i])
		for _, p := range points {
			x, y, _ := strings.Cut(p, ",")
			say(`  <circle cx="%s" cy="%s" r="4" fill="%s"/>`, x, y, colors[i])
		}
		y := 80 + 26*i
		say(`  <path d="M550 %dh24" stroke="%s" stroke-width="3"/><text x="582" y="%d" fill="#1d1d1f">%s</text>`, y, colors[i], y+4, f.Name)
	}
	say(`</svg>`)
	return b.String()
}
