package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// browser opens a page in Chromium, without a window, until the test ends. Each error that the browser reports fails the
// test, unless it is expected: an exception, and whatever the page's policy forbids.
func browser(t *testing.T, url string, expected ...string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute), chromedp.WindowSize(1280, 1400))
	ctx, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page has failed: %v", e.ExceptionDetails)
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.EntryLevelError && !slices.ContainsFunc(expected, func(s string) bool { return strings.Contains(e.Entry.Text, s) }) {
				t.Errorf("the browser reports: %s", e.Entry.Text)
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate(url))
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// evaluate returns the value of an expression on the page, or what its promise results in.
func evaluate[T any](page context.Context, t *testing.T, expression string) (value T) {
	t.Helper()
	value, err := chromedp.Run(page, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// room starts shop lab and returns the address of its page. It ends with the test.
func room(t *testing.T, program string, flags ...string) (url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	output, code := new(testbedtest.Buffer), make(chan int, 1)
	go func() {
		code <- callUntil(ctx, t, program, noEnv, output, output, append([]string{"lab"}, flags...)...)
	}()
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != 0 {
			t.Errorf("the room ended with exit code %d: %s", c, output)
		}
	})
	address := regexp.MustCompile(`http://\S+#token=\S+`)
	testbedtest.Eventually(t, "the room is open", func() bool {
		url = address.FindString(output.String())
		return url != ""
	})
	return url
}

// The control room shows that naive oversells and redis does not, as the database says. The same holds after the
// buttons of the page have killed one instance, paused another, and cut the connections of the third.
func TestControlRoomSellsAndBreaks(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	url := room(t, program, "--database", database, "--redis", ownRedis(t))
	store := books(t, database)
	page := browser(t, url, "net::ERR_", "Service Unavailable", "Bad Gateway") // as what it reads from is killed
	text := func(selector string) string {
		return evaluate[string](page, t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
	}
	press := func(action, instance string) {
		t.Helper()
		button := fmt.Sprintf("button[data-action=%q][data-instance=%q]", action, instance)
		testbedtest.Eventually(t, "there is a button: "+action+" "+instance, func() bool {
			return evaluate[bool](page, t, fmt.Sprintf("document.querySelector('%s')?.click() === undefined && !!document.querySelector('%s')", button, button))
		})
	}
	state := func(instance, want string) {
		t.Helper()
		testbedtest.Eventually(t, instance+" is "+want, func() bool {
			return evaluate[bool](page, t, fmt.Sprintf("!!document.querySelector('#machines [data-name=%q][data-state=%q]')", instance, want))
		})
	}
	evaluate[bool](page, t, "(window.confirm = () => true) && true")
	sell := func(strategies [2]string, units, attempts int) {
		t.Helper()
		testbedtest.Eventually(t, "a sale can be started", func() bool {
			return evaluate[bool](page, t, "document.querySelector('form#sale button:not(:disabled)') !== null")
		})
		evaluate[bool](page, t, fmt.Sprintf(`(() => {
			const form = document.querySelector('form#sale');
			form.first.value = %q; form.second.value = %q; form.units.value = %d; form.attempts.value = %d;
			form.requestSubmit();
			return true;
		})()`, strategies[0], strategies[1], units, attempts))
	}
	ended := func() {
		t.Helper()
		testbedtest.Eventually(t, "the sale has ended and was audited", func() bool {
			if alert := text("[role=alert]"); alert != "" {
				t.Fatal(alert)
			}
			return evaluate[bool](page, t, "!!document.querySelector('.lanes article') && document.querySelector('form#sale button:not([type])').disabled === false")
		})
	}
	// figures compares what the page says of a lane with an audit of the database.
	figures := func(strategy string) stock.Audit {
		t.Helper()
		lane := fmt.Sprintf("article[data-strategy=%q] ", strategy)
		a, err := store.Audit(t.Context(), text(lane+"h3 code"))
		if err != nil {
			t.Fatal(err)
		}
		for figure, want := range map[string]int64{"accepted": a[0].Accepted(), "left": a[0].OnHand - a[0].Reserved, "lost": a[0].LostUpdates()} {
			if got := text(lane + fmt.Sprintf("[data-figure=%q]", figure)); got != fmt.Sprint(want) {
				t.Errorf("%s: %s is %s on the page and %d in the database", strategy, figure, got, want)
			}
		}
		return a[0]
	}

	sell([2]string{"naive", "redis"}, 50, 400)
	ended()
	if a := figures("naive"); a.Oversold() == 0 || text("article[data-strategy=naive] .verdict") != fmt.Sprintf("OVERSOLD %d", a.Oversold()) {
		t.Errorf("naive oversold by %d; the page says %q", a.Oversold(), text("article[data-strategy=naive] .verdict"))
	}
	if a := figures("redis"); a.Accepted() != 50 || text("article[data-strategy=redis] .verdict") != "exact" {
		t.Errorf("redis sold %d of 50; the page says %q", a.Accepted(), text("article[data-strategy=redis] .verdict"))
	}

	sell([2]string{"redis", ""}, 3000, 100_000)
	testbedtest.Eventually(t, "the second sale is under way", func() bool {
		return evaluate[int](page, t, "document.querySelectorAll('.lanes article').length") == 1 && text("article[data-strategy=redis] [data-figure=accepted]") != "0"
	})
	unhurt := func() {
		t.Helper()
		if alert := text("[role=alert]"); alert != "" {
			t.Error(alert)
		}
	}
	for _, action := range []string{"late", "cut-off"} {
		button := fmt.Sprintf("document.querySelector('[data-action=%s]')", action)
		line := "document.getElementById(" + button + ".getAttribute('aria-describedby'))"
		if what := evaluate[string](page, t, line+"?.checkVisibility() ? "+line+".innerText : ''"); !strings.HasPrefix(what, text("[data-action="+action+"]")+": ") {
			t.Errorf("the page describes the button %s as %q", action, what)
		}
	}
	// A process that is late writes with a token that the row no longer accepts. Its lease overlaps those of the instances.
	evaluate[bool](page, t, "document.querySelector('[data-action=late-holder]').click() ?? true")
	testbedtest.Eventually(t, "a late write is refused", func() bool { return text("#refused-writes") != "0" })
	testbedtest.Eventually(t, "two concurrent holders are shown", func() bool { return text("#double-holds") != "0" })
	press("kill", "shop-1") // which also carries the page's stream of events
	state("shop-1", "ended")
	unhurt()
	press("pause", "shop-2")
	state("shop-2", "paused")
	unhurt()
	press("cut-off", "shop-3")
	press("reconnect", "shop-3")
	unhurt()
	press("resume", "shop-2")
	state("shop-2", "running")
	unhurt()
	press("start", "shop-1")
	state("shop-1", "running")
	unhurt()
	testbedtest.Eventually(t, "half of the units are sold", func() bool {
		return evaluate[bool](page, t, "Number(document.querySelector('article[data-strategy=redis] [data-figure=accepted]')?.innerText) >= 1500")
	})
	testbedtest.Eventually(t, "the sale is sold out", func() bool {
		return text("article[data-strategy=redis] [data-figure=rejected]") != "0"
	})
	evaluate[bool](page, t, "document.querySelector('form#sale button[type=button]').click() ?? true")
	ended()
	sku := text("article[data-strategy=redis] h3 code")
	a, err := store.Audit(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if a[0].Oversold() != 0 || len(a[0].Broken()) != 0 {
		t.Errorf("%s: %v", sku, a[0].Broken())
	}
	testbedtest.Eventually(t, "the page follows the events again", func() bool { return text("#connection") == "live" })
}

// A control room does nothing for those who do not have its token, nor for pages of other origins, nor under another name.
func TestControlRoomRefusesStrangers(t *testing.T) {
	t.Parallel()
	whole := room(t, program, "--instances", "1")
	url, token, _ := strings.Cut(whole, "/#token=")
	address := strings.TrimPrefix(url, "http://")
	for name, c := range map[string]struct {
		method, path, host, origin, token string
		want                              int
	}{
		"owner":              {"POST", "/lab/actions/redis-wipe", address, url, token, http.StatusNoContent},
		"no token":           {"POST", "/lab/actions/redis-wipe", address, url, "", http.StatusUnauthorized},
		"another token":      {"POST", "/lab/actions/redis-wipe", address, url, token + "A", http.StatusUnauthorized},
		"another origin":     {"POST", "/lab/actions/redis-wipe", address, "http://example.com", token, http.StatusForbidden},
		"another name":       {"POST", "/lab/actions/redis-wipe", "example.com", "", token, http.StatusForbidden},
		"no POST":            {"GET", "/lab/actions/redis-wipe", address, "", token, http.StatusMethodNotAllowed},
		"no such action":     {"POST", "/lab/actions/explode", address, "", token, http.StatusNotFound},
		"no such instance":   {"POST", "/lab/actions/kill?instance=shop-9", address, "", token, http.StatusNotFound},
		"not in this state":  {"POST", "/lab/actions/resume?instance=shop-1", address, "", token, http.StatusConflict},
		"no sale":            {"POST", "/lab/sale/stop", address, "", token, http.StatusConflict},
		"API, another site":  {"POST", "/api/v1/orders", address, "http://example.com", "", http.StatusForbidden},
		"API, another name":  {"GET", "/api/v1/skus", "example.com", "", "", http.StatusForbidden},
		"API":                {"GET", "/api/v1/skus", address, "", "", http.StatusOK},
		"state, no token":    {"GET", "/lab/state", address, "", "", http.StatusUnauthorized},
		"the page by itself": {"GET", "/", address, "", "", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		if c.token != "" {
			req.Header.Set("Shop-Room-Token", c.token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, c.want)
		}
	}
}
