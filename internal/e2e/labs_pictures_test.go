package e2e_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// readable is what the browser has made of a picture.
type readable struct {
	Texts int      `json:"texts"`
	Wrong []string `json:"wrong"`
}

// drawPicture shows an SVG on an empty page. Texts must be in the picture, white ones on their bar. They must not cover each other, nor be
// covered by a mark.
const drawPicture = `((svg) => {
	document.body.innerHTML = svg;
	const whole = document.querySelector('svg').getBoundingClientRect(), wrong = [];
	const leaves = (a, b, by) => a.left < b.left - by || a.right > b.right + by || a.top < b.top - by || a.bottom > b.bottom + by;
	const covers = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
	const texts = [...document.querySelectorAll('text')].map((e) => ({e, said: e.textContent, box: e.getBoundingClientRect()}));
	const circles = [...document.querySelectorAll('circle')].map((e) => ({e, box: e.getBoundingClientRect()}));
	texts.forEach(({e, said, box}, i) => {
		if (leaves(box, whole, 0)) wrong.push(said + ' leaves the picture');
		if (e.getAttribute('fill') === '#ffffff' && leaves(box, e.parentNode.querySelector('rect').getBoundingClientRect(), 1)) wrong.push(said + ' leaves its bar');
		for (const other of texts.slice(0, i)) if (covers(box, other.box)) wrong.push(said + ' covers ' + other.said);
		for (const c of circles) if (c.e.parentNode !== e.parentNode && covers(box, c.box)) wrong.push('a mark covers ' + said);
	});
	return {texts: texts.length, wrong};
})(%q)`

var legendColors = regexp.MustCompile(` data-legend="\w+"[^>]* fill="#([0-9a-f]{6})"`)

// Each picture of a lab becomes a PNG in Chromium that has each color of its legend, outside of the legend as well. All its texts can be read.
func TestPicturesOfLabsCanBeRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/labs/*.svg")
	if err != nil || len(files) < 42 {
		t.Fatalf("%d pictures, %v; want one in each language for each lab", len(files), err)
	}
	page := browser(t, "about:blank")
	view(page, t, 800, 1, "light")
	for _, file := range files {
		name, svg := strings.TrimSuffix(filepath.Base(file), ".svg"), fileText(t, file)
		if found := evaluate[readable](page, t, fmt.Sprintf(drawPicture, svg)); len(found.Wrong) > 0 || found.Texts < 8 {
			t.Errorf("%s, of %d texts: %s", name, found.Texts, strings.Join(found.Wrong, "; "))
		}
		picture, err := chromedp.Run(page, chromedp.Screenshot(chromedp.CSS("svg")))
		must(t, err)
		seen := colorsOf(t, picture)
		for _, color := range legendColors.FindAllStringSubmatch(svg, -1) {
			if seen[color[1]] < 12*12+20 { // more than the legend
				t.Errorf("%s.png has %d pixels of color %s", name, seen[color[1]], color[1])
			}
		}
		if *screenshots != "" {
			must(t, os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600))
		}
	}
}

// colorsOf counts the pixels of each color.
func colorsOf(t *testing.T, picture []byte) map[string]int {
	t.Helper()
	drawn, err := pixels(picture)
	must(t, err)
	count, named := make(map[[3]byte]int), make(map[string]int)
	for at := 0; at < len(drawn.Pix); at += 4 {
		count[[3]byte(drawn.Pix[at:])]++
	}
	for color, n := range count {
		named[hex.EncodeToString(color[:])] = n
	}
	return named
}

// pixels decodes a picture.
func pixels(picture []byte) (*image.RGBA, error) {
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	full := image.NewRGBA(decoded.Bounds())
	draw.Draw(full, full.Rect, decoded, image.Point{}, draw.Src)
	return full, nil
}
