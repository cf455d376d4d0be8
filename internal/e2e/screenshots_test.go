package e2e_test

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

var screenshots = flag.String("screenshots", "", "`FOLDER` to write the pictures of the control room to: make screenshots")

// maxPicture is how many bytes a picture of the README may have.
const maxPicture = 250_000

// The pictures of the control room show a sale that oversells without a lock and is exact with one. They show the leases of the lock, and
// each other view. No view is wider than its window, and axe-core finds nothing in any.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	page := browser(t, room(t, product(t), "--database", testbedtest.Database(t)))
	size := func(scale float64) float64 { // large for documents only, as pixels cost most of the time
		if *screenshots == "" {
			return 1
		}
		return scale
	}
	view(page, t, 1440, 1, "light")
	sellWithAndWithoutLock(page, t)
	for _, p := range []struct {
		name, language, scheme string
		width                  int64
		scale                  float64
	}{
		{"control-room.png", "en", "light", 1440, 1.25},
		{"control-room-dark.png", "en", "dark", 1440, 1.25},
		{"control-room-tablet.png", "en", "light", 1024, 1.25},
		{"control-room-phone.png", "en", "light", 390, 2},
		{"control-room-zh.png", "zh", "light", 1440, 1.25},
	} {
		view(page, t, p.width, size(p.scale), p.scheme)
		evaluate[bool](page, t, fmt.Sprintf("document.documentElement.lang === %q || (document.querySelector('header button[lang]').click() ?? true)", p.language))
		testbedtest.Eventually(t, p.name+" fits its window", func() bool {
			return evaluate[int64](page, t, "document.documentElement.scrollWidth") == p.width
		})
		accessible(page, t, p.name)
		picture := capture(page, t, p.width, size(p.scale))
		keep(t, p.name, picture)
	}
	view(page, t, 1440, size(1.25), "light")
	evaluate[bool](page, t, "document.documentElement.lang === 'en' || (document.querySelector('header button[lang]').click() ?? true)")
	sellWithALateHolder(page, t)
	keep(t, "late-holder.png", capture(page, t, 1440, size(1.25)))
	keepSection(page, t, "story", "control-room-story.png")
	fillViews(page, t, size(1.5))
	for _, p := range []struct {
		name  string
		width int64
	}{{"instances", 700}, {"labs", 1120}, {"events", 1120}, {"settings", 1120}} {
		view(page, t, p.width, size(1.5), "light")
		if slices.Contains([]string{"events", "settings"}, p.name) {
			show(page, t, p.name)
			keepSection(page, t, "records", "control-room-"+p.name+".png")
			continue
		}
		keepSection(page, t, p.name, "control-room-"+p.name+".png")
	}
}

// keepSection keeps a picture of one section of the page.
func keepSection(page context.Context, t *testing.T, name, file string) {
	t.Helper()
	picture, err := chromedp.Run(page, chromedp.Screenshot(chromedp.CSS("section[aria-labelledby="+name+"-title]")))
	must(t, err)
	keep(t, file, picture)
}

// fillViews runs a lab to its verdict and lets orders expire. Then it pauses one instance and cuts off another. It keeps the picture of the
// orders, as a pause takes an instance's part of a trace away.
func fillViews(page context.Context, t *testing.T, scale float64) {
	t.Helper()
	do := func(what, expression string) {
		t.Helper()
		testbedtest.Eventually(t, what, func() bool { return evaluate[bool](page, t, "!!("+expression+")") })
	}
	press := func(selector string) {
		t.Helper()
		do("there is a button "+selector, fmt.Sprintf("((b) => b && !b.disabled && (b.click() ?? true))(document.querySelector(%q))", selector))
	}
	press("header button[aria-pressed=true]") // the page continues
	press("form#sale button[type=button]")    // the sale of the late holder ends
	press("[data-action=unpaid]")
	do("there is a lab", `((select) => {
		select.value = 'lost-update';
		select.dispatchEvent(new Event('change', {bubbles: true}));
		return select.value;
	})(document.querySelector('#labs select'))`)
	press("[data-action=lab]")
	do("the lab has a verdict", "document.querySelector('#labs [data-verdict]')")
	do("all unpaid orders have expired", "document.querySelector('#orders').innerText.includes('100 orders')")
	press("#orders tbody button.link")
	do("the trace of an order has its expiry", stepsAre("order.place", "queue", "stock.reserve", "COMMIT", "timers order.expire", "event EXPIRED"))
	view(page, t, 1120, scale, "light")
	keepSection(page, t, "records", "control-room-orders.png")
	press("[data-action=pause][data-instance=shop-2]")
	press("[data-action=cut-off][data-instance=shop-3]")
	do("both faults are shown", "document.querySelector('[data-name=shop-2][data-state=paused]') && document.querySelector('[data-action=reconnect][data-instance=shop-3]')")
	for _, language := range []string{"en", "zh"} {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1440, 1024, 390} {
				view(page, t, width, 1, scheme)
				accessible(page, t, fmt.Sprintf("all views, with a lab that is open: %s, %s, %d pixels", language, scheme, width))
				if over := evaluate[int64](page, t, "document.documentElement.scrollWidth"); over != width {
					t.Errorf("the page is %d pixels wide in a window of %d", over, width)
				}
			}
		}
		evaluate[bool](page, t, "document.querySelector('header button[lang]').click() ?? true")
	}
}

// keep writes a picture into the folder of pictures. Without one, it only sees that the smallest can be written.
func keep(t *testing.T, name string, picture []byte) {
	t.Helper()
	if *screenshots == "" && name != "control-room-phone.png" {
		return
	}
	picture, err := reduced(picture)
	must(t, err)
	if len(picture) > maxPicture {
		t.Errorf("%s has %d bytes, want at most %d", name, len(picture), maxPicture)
	}
	if *screenshots != "" {
		must(t, os.WriteFile(filepath.Join(*screenshots, name), picture, 0o600))
	}
}

// sellWithALateHolder sells by redis until the row has refused the write of a late holder, and pauses the page with both in view.
func sellWithALateHolder(page context.Context, t *testing.T) {
	t.Helper()
	evaluate[bool](page, t, "document.querySelector('header button').click() ?? true")
	evaluate[bool](page, t, `(() => {
		const form = document.querySelector('form#sale');
		form.first.value = 'redis'; form.second.value = ''; form.units.value = 5000; form.attempts.value = 100000; form.buyers.value = 3;
		form.requestSubmit();
		return true;
	})()`)
	evaluate[bool](page, t, "[...document.querySelectorAll('section[aria-labelledby=lane-title] [aria-pressed]')].find((b) => b.innerText === '10 s').click() ?? true")
	sold := 50
	if *screenshots != "" { // a longer chart
		sold = 800
	}
	testbedtest.Eventually(t, "a holder can be late", func() bool {
		return evaluate[bool](page, t, fmt.Sprintf("!!document.querySelector('[data-action=late-holder]:not(:disabled)') && Number(document.querySelector('[data-strategy=redis] [data-figure=accepted]')?.innerText) > %d", sold))
	})
	var pressed time.Time
	testbedtest.Eventually(t, "two concurrent holders, and a refused write", func() bool {
		if time.Since(pressed) > 45*time.Second { // on a busy machine, it gives up after 30 s
			evaluate[bool](page, t, "document.querySelector('[data-action=late-holder]').click() ?? true")
			pressed = time.Now()
		}
		return evaluate[bool](page, t, "document.querySelector('#refused-writes').innerText !== '0' && document.querySelector('#double-holds').innerText !== '0' && "+leasesInView+" && (document.querySelector('header button').click() ?? true)")
	})
}

//go:embed testdata/axe.min.js
var axe string

// accessible fails the test if axe-core finds something on the page.
func accessible(page context.Context, t *testing.T, name string) {
	t.Helper()
	evaluate[bool](page, t, axe+"; true")
	const findings = `axe.run().then((r) => r.violations
		.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 200)).join(' ')).join('\n'))`
	if found := evaluate[string](page, t, findings); found != "" {
		t.Errorf("%s: %s", name, found)
	}
}

// view sets the window and the color scheme of a page.
func view(page context.Context, t *testing.T, width int64, scale float64, scheme string) {
	t.Helper()
	_, err := chromedp.Call(page, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err == nil {
		err = chromedp.Do(page, chromedp.EmulateViewport(width, 1400, chromedp.EmulateScale(scale)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sellWithAndWithoutLock sells by naive and by redis. It pauses the page when it shows the audits and has leases in view, so that nothing
// moves between the pictures.
func sellWithAndWithoutLock(page context.Context, t *testing.T) {
	t.Helper()
	wait := func(what, condition string) {
		t.Helper()
		testbedtest.Eventually(t, what, func() bool { return evaluate[bool](page, t, "!!("+condition+")") })
	}
	wait("a sale can be started", "document.querySelector('form#sale button:not(:disabled)') !== null")
	units := 100
	if *screenshots != "" { // a taller chart
		units = 400
	}
	evaluate[bool](page, t, fmt.Sprintf(`(() => {
		const form = document.querySelector('form#sale');
		form.units.value = %d; form.attempts.value = %d;
		form.requestSubmit();
		return true;
	})()`, units, units*8/5))
	defer func() {
		t.Logf("sales: %s", evaluate[string](page, t, "[...document.querySelectorAll('[data-strategy]')].map((s) => s.dataset.strategy + ': ' + s.innerText).join('; ').replaceAll('\\n', ' ')"))
	}()
	wait("naive was audited as oversold, and redis as exact, and leases are in view",
		"document.querySelector('[data-strategy=naive] [data-verdict=oversold]') && document.querySelector('[data-strategy=redis] [data-verdict=exact]') && document.querySelector('#lane-title code')?.innerText.startsWith('redis-') && "+leasesInView+" && (document.querySelector('header button').click() ?? true)")
	for _, span := range []string{"0.2 s", "1 s", "10 s"} { // the shortest shows fencing tokens
		if evaluate[bool](page, t, "[...document.querySelectorAll('section[aria-labelledby=lane-title] [aria-pressed]')].find((b) => b.innerText === '"+span+
			"').click() ?? new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done("+leasesInView+"))))") {
			break
		}
	}
	if got := evaluate[string](page, t, "document.querySelector('form#sale').units.value"); got != fmt.Sprint(units) {
		t.Errorf("the page has overwritten the %d units that were typed by %s", units, got)
	}
}

// leasesInView is whether the lock lane shows leases of two instances at least: bars have the color of their instance.
const leasesInView = `((lane) => {
	const style = getComputedStyle(document.documentElement), count = new Map();
	for (let i = 0; i < 6; i++) count.set(parseInt(style.getPropertyValue('--bar-' + i).trim().slice(1), 16), 0);
	const pixels = lane.getContext('2d').getImageData(0, 0, lane.width, lane.height).data;
	for (let i = 0; i < pixels.length; i += 4) {
		const color = pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2];
		if (count.has(color)) count.set(color, count.get(color) + 1);
	}
	return [...count.values()].filter((n) => n > 50).length > 1;
})(document.querySelector('section[aria-labelledby=lane-title] canvas'))`

// capture takes a picture of what the README shows: the sale and the lock lane.
func capture(page context.Context, t *testing.T, width int64, scale float64) []byte {
	t.Helper()
	height := evaluate[float64](page, t, "scrollTo(0, 0), document.querySelector('section[aria-labelledby=lane-title]').getBoundingClientRect().bottom")
	if err := chromedp.Do(page, chromedp.EmulateViewport(width, int64(height)+16, chromedp.EmulateScale(scale))); err != nil {
		t.Fatal(err)
	}
	// Two frames, so that the canvas is drawn at this size.
	evaluate[bool](page, t, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
	if !evaluate[bool](page, t, leasesInView) {
		t.Error("the picture has no leases in view")
	}
	picture, err := chromedp.Run(page, chromedp.CaptureScreenshot())
	must(t, err)
	return picture
}

// reduced encodes a picture with its 256 most frequent colors.
func reduced(picture []byte) ([]byte, error) {
	full, err := pixels(picture)
	if err != nil {
		return nil, err
	}
	count := make(map[[4]byte]int)
	for at := 0; at < len(full.Pix); at += 4 {
		count[[4]byte(full.Pix[at:])]++
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b [4]byte) int { return count[b] - count[a] })
	few := image.NewPaletted(full.Rect, nil)
	for _, c := range all[:min(len(all), 256)] {
		few.Palette = append(few.Palette, color.RGBA{c[0], c[1], c[2], c[3]})
	}
	nearest := make(map[[4]byte]uint8)
	for _, c := range all {
		nearest[c] = uint8(few.Palette.Index(color.RGBA{c[0], c[1], c[2], c[3]}))
	}
	for i := range few.Pix {
		few.Pix[i] = nearest[[4]byte(full.Pix[4*i:])]
	}
	var small bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, few)
	return small.Bytes(), err
}
