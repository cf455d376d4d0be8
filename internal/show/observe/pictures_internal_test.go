package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

var screenshots = flag.String("screenshots", "", "`FOLDER` to write the pictures of the dashboards to: make screenshots")

// `make observe` shows a sale with all its faults: VictoriaMetrics has data for every query of every panel, and VictoriaLogs has lines
// of each instance, with the fields that docs/how-to/observe.md names. Once it is interrupted nothing is left. It needs both programs in .bin, which `make` builds.
func TestMakeObserve(t *testing.T) {
	testbedtest.FullSize(t)
	shop := filepath.Dir(product(t))
	t.Chdir("../../..")
	t.Setenv("PATH", strings.Join([]string{shop, filepath.Join(files, "../../.bin"), os.Getenv("PATH")}, ":"))
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, over := new(testbedtest.Buffer), make(chan error, 1)
	go func() { over <- run(ctx, 2*time.Second, said) }()
	const lastFault = "refuses connections"
	testbedtest.Eventually(t, "all faults have begun", func() bool {
		select {
		case err := <-over:
			t.Fatalf("it ended: %v", err)
		default:
		}
		return strings.Contains(said.String(), lastFault)
	})
	addresses := regexp.MustCompile(`http://[0-9.:]+`).FindAllString(said.String(), 2)
	metrics, logs := engine(addresses[0]), addresses[1]
	testbedtest.Eventually(t, "an audit has failed", func() bool { return len(metrics.query(t, "shop_audit_failures_total > 0")) > 0 })
	metrics.showPanels(t)
	for _, search := range []string{"service.instance.id:shop-1", "service.instance.id:shop-2", "service.instance.id:shop-3", "severity_text:WARN", "trace_id:*"} {
		if lines := get(t, logs+"/select/logsql/query?limit=1&query="+url.QueryEscape(search)); !strings.Contains(lines, "_msg") {
			t.Errorf("%s finds %q", search, lines)
		}
	}
	if *screenshots != "" {
		takePictures(t, string(metrics))
	}
	interrupt()
	if err := <-over; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "org.chromium.") }) // of the browser
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	for _, address := range addresses {
		if resp, err := http.Get(address); err == nil {
			resp.Body.Close()
			t.Errorf("%s still answers", address)
		}
	}
}

// takePictures writes a picture of the upper rows of each dashboard, after all of its rows are drawn.
func takePictures(t *testing.T, metrics string) {
	t.Helper()
	const width, tallest, scale = 2000, 2900, 0.6
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute), chromedp.WindowSize(width, 1000))
	page, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	page, stop = chromedp.NewContext(page)
	defer stop()
	if err := chromedp.Do(page, chromedp.Navigate(metrics+"/vmui/#/dashboards?g0.range_input=1m&g0.relative_time=none&g0.step_input=1s")); err != nil {
		t.Fatal(err)
	}
	count := func(expression string) (n int) {
		n, err := chromedp.Run(page, chromedp.Evaluate[int](expression))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, d := range readDashboards(t) {
		panels := 0
		for _, r := range d.Rows {
			panels += len(r.Panels)
		}
		testbedtest.Eventually(t, "there is a tab "+d.Title, func() bool {
			return count(fmt.Sprintf("[...document.querySelectorAll('.vm-predefined-panels-tabs__tab')].filter((e) => e.textContent.trim() === %q).map((e) => e.click()).length", d.Title)) == 1
		})
		testbedtest.Eventually(t, "all rows are open", func() bool {
			return count("[...document.querySelectorAll('.vm-predefined-dashboard-header:not(.vm-predefined-dashboard-header_open)')].map((e) => e.click()).length") == 0 &&
				count("document.querySelectorAll('.vm-predefined-panel').length") == panels
		})
		testbedtest.Eventually(t, fmt.Sprintf("%d panels of %s are drawn", panels, d.Title), func() bool {
			height := count("Math.ceil(document.querySelector('.vm-predefined-panels').getBoundingClientRect().bottom + scrollY + 20)")
			if err := chromedp.Do(page, chromedp.EmulateViewport(width, int64(height), chromedp.EmulateScale(scale))); err != nil {
				t.Fatal(err)
			}
			return count("document.querySelectorAll('.vm-predefined-panel canvas').length") == panels && count("document.querySelectorAll('.vm-spinner').length") == 0
		})
		picture, err := chromedp.Run(page, chromedp.CaptureScreenshot())
		if err == nil {
			picture, err = top(picture, tallest*scale)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, "dashboard-"+d.Name+".png"), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// top returns a picture without what is below the given height.
func top(picture []byte, height int) ([]byte, error) {
	whole, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	size := whole.Bounds()
	upper := image.NewRGBA(image.Rect(0, 0, size.Dx(), min(size.Dy(), height)))
	draw.Draw(upper, upper.Bounds(), whole, size.Min, draw.Src)
	var out bytes.Buffer
	err = png.Encode(&out, upper)
	return out.Bytes(), err
}
