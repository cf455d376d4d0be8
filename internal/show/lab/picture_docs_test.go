package lab_test

import (
	"html"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/shop/internal/show/lab"
)

var (
	drawnParts  = regexp.MustCompile(`(?:rx="\d+" fill|stroke)="(#[0-9a-f]{6})"`)
	legendForm  = regexp.MustCompile(`<rect data-legend="(\w+)"[^>]* fill="(#[0-9a-f]{6})"/><text [^>]*>([^<]*)</text>`)
	spanForm    = regexp.MustCompile(`<g data-from="[^"]*" data-until="[^"]*"><rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"[^>]*><title>[^<]*</title></rect>(?:<text x="([\d.]+)"[^>]*>([^<]*)</text>)?</g>`)
	circleForm  = regexp.MustCompile(`<g data-from="([\d.]+)"><circle cx="([\d.]+)" cy="(\d+)"[^>]*/><text [^>]*>(\w)</text><text [^>]*>\w  (\d+) ms: ([^<]*)</text>`)
	stepForm    = regexp.MustCompile(`(?m)^ *([\d.]+) ms  `)
	letterWidth = 6.0
)

// A picture has one legend, which names what each of its colors means there, and no color that it has not.
func TestPicturesSayWhatTheirColorsMean(t *testing.T) {
	t.Parallel()
	for _, l := range lab.All() {
		svg := read(t, l.File()+".svg")
		means := make(map[string]string)
		for _, m := range legendForm.FindAllStringSubmatch(svg, -1) {
			if means[m[2]] = m[3]; strings.TrimSpace(m[3]) == "" {
				t.Errorf("%s.svg: the legend does not say what %s means", l.File(), m[1])
			}
		}
		body := legendForm.ReplaceAllString(svg, "")
		used := make(map[string]bool)
		for _, m := range drawnParts.FindAllStringSubmatch(body, -1) {
			if used[m[1]] = true; means[m[1]] == "" {
				t.Errorf("%s.svg: the legend lacks %s", l.File(), m[1])
			}
		}
		if len(used) != len(means) || len(used) == 0 {
			t.Errorf("%s.svg has %d colors, and its legend %d", l.File(), len(used), len(means))
		}
	}
}

// No mark covers the label of a bar, and each bar can be seen.
func TestPicturesCoverNoLabel(t *testing.T) {
	t.Parallel()
	labels := 0
	for _, l := range lab.All() {
		svg := read(t, l.File()+".svg")
		for _, s := range spanForm.FindAllStringSubmatch(svg, -1) {
			if number(t, s[3]) < 4 {
				t.Errorf("%s.svg: a bar is %s wide", l.File(), s[3])
			}
			if s[5] == "" {
				continue
			}
			labels++
			from := number(t, s[4])
			until := from + letterWidth*float64(len([]rune(html.UnescapeString(s[5]))))
			for _, c := range circleForm.FindAllStringSubmatch(svg, -1) {
				if x := number(t, c[2]); math.Abs(number(t, c[3])-number(t, s[2])-10) < 1 && x+8 > from && x-8 < until {
					t.Errorf("%s.svg: mark %s at %s covers %q at %s", l.File(), c[4], c[2], s[5], s[4])
				}
			}
		}
	}
	if labels < 20 {
		t.Errorf("the pictures have %d labels", labels)
	}
}

// A mark of a picture says when it happened in the run, as the steps of the page do.
func TestPicturesHaveTheTimesOfTheSteps(t *testing.T) {
	t.Parallel()
	marks := 0
	for _, l := range lab.All() {
		var steps []float64
		for _, m := range stepForm.FindAllStringSubmatch(read(t, l.File()+".md"), -1) {
			steps = append(steps, number(t, m[1]))
		}
		for _, c := range circleForm.FindAllStringSubmatch(read(t, l.File()+".svg"), -1) {
			marks++
			at, says := number(t, c[1]), number(t, c[5])
			if math.Abs(at-says) > 1 || says < steps[0]-1000 || says > slices.Max(steps)+1000 {
				t.Errorf("%s.svg: mark %s, %q, is at %.1f ms and says %.0f ms; the steps are from %.1f to %.1f ms", l.File(), c[4], c[6], at, says, steps[0], slices.Max(steps))
			}
		}
	}
	if marks < 60 {
		t.Errorf("the pictures have %d marks", marks)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
