package lab_test

import (
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/show/lab"
)

// A part of a picture says when it happened, so that a page shows it at the right step. Its row may be drawn earlier.
func TestPictureKnowsWhenItsPartsHappened(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	p := &lab.Picture{Title: "two parts of a run"}
	p.Span("first", zero, zero.Add(200*time.Millisecond), lab.Holds, "")
	p.Mark("second", zero.Add(50*time.Millisecond), lab.Stale, "write")
	p.Later("second", 3*time.Second)
	svg := p.SVG()
	for what, want := range map[string]string{
		"the lease of the first row":  `<g data-from="0.0" data-until="200.0"><rect`,
		"the write of the second row": `<g data-from="3050.0"><circle`,
		"the cursor of the first row": `data-from="0.0" data-until="200.0" x=`,
		"the cursor of the second":    `data-from="3000.0" data-until="3200.0" x=`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s: no %s in %s", what, want, svg)
		}
	}
}
