package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// tabs is how many tabs of one browser show a control room. A browser opens six connections to one host.
const tabs = 6

// actsWithin is how long what a button does may take to be shown, buttonLimit how long the page waits for its response, and opensWithin how
// long six tabs may take to open.
const actsWithin, buttonLimit, opensWithin = 10 * time.Second, 5 * time.Second, time.Minute

// roomTab is one tab with a control room.
type roomTab struct {
	*testing.T
	page context.Context //nolint:containedctx // It is the tab of the browser.
}

// emptyTabs returns empty tabs of one browser, and the address of a room with two instances.
func emptyTabs(t *testing.T) (all []roomTab, address string) {
	t.Helper()
	address = room(t, program, "--instances", "2", "--redis", ownRedis(t))
	first := browser(t, "about:blank")
	for n := range tabs {
		page := first
		if n > 0 {
			var stop context.CancelFunc
			page, stop = chromedp.NewContext(first)
			t.Cleanup(stop)
		}
		must(t, chromedp.Do(page, chromedp.Navigate("about:blank")))
		all = append(all, roomTab{t, page})
	}
	return all, address
}

// opens opens the room without waiting for it.
func (r roomTab) opens(address string) {
	r.Helper()
	evaluate[bool](r.page, r.T, fmt.Sprintf("(location.href = %q) !== ''", address))
}

// within waits until an expression is true in the tab.
func (r roomTab) within(limit time.Duration, what, expression string) {
	r.Helper()
	began := time.Now()
	testbedtest.Eventually(r.T, what, func() bool {
		if since := time.Since(began); since > limit {
			r.Fatalf("%s: not within %v", what, limit)
		}
		value, err := chromedp.Run(r.page, chromedp.Evaluate[bool]("!!("+expression+")", chromedp.EvalAwaitPromise))
		return err == nil && value // a page that is being opened has none
	})
}

// live is true of a page with the room, the present stock and the events.
const live = `document.querySelector('#connection')?.innerText === 'live' && document.querySelector('form#sale button:not(:disabled)')
	&& document.querySelectorAll('#machines [data-name]').length === 2 && document.querySelector('#lost-room') === null`

// is is true if the tab shows an instance in a state.
func is(instance, state string) string {
	return fmt.Sprintf("document.querySelector('#machines [data-name=%q][data-state=%q]')", instance, state)
}

// press presses a button of an instance.
func (r roomTab) press(action, instance string) {
	r.Helper()
	evaluate[bool](r.page, r.T, fmt.Sprintf(`document.querySelector("button[data-action='%s'][data-instance='%s']").click() ?? true`, action, instance))
}

// A room works in more tabs than a browser opens connections to one host: each shows what happens, and a button of the last one acts at once.
func TestControlRoomWorksInSixTabs(t *testing.T) {
	t.Parallel()
	all, address := emptyTabs(t)
	for _, tab := range all {
		tab.opens(address)
	}
	for n, tab := range all {
		tab.within(opensWithin, fmt.Sprintf("tab %d is live", n+1), live)
	}
	last := all[tabs-1]
	for _, c := range [][2]string{{"pause", "paused"}, {"resume", "running"}} {
		last.press(c[0], "shop-1")
		for n, tab := range all {
			tab.within(actsWithin, fmt.Sprintf("tab %d shows that shop-1 is %s", n+1, c[1]), is("shop-1", c[1]))
		}
	}
	evaluate[bool](last.page, t, sellOf(20, 30, 2, 0))
	for n, tab := range all { // the levels are those of events
		show(tab.page, t, "stock")
		tab.within(opensWithin, fmt.Sprintf("tab %d shows the sale and its events", n+1), `document.querySelector('[data-strategy=redis] [data-verdict=exact]')
			&& /redis\t20\t20\t0/.test(document.querySelector('#stock')?.innerText) && document.querySelector('#reloads') === null`)
	}
	evaluate[bool](all[0].page, t, "document.querySelector('header button').click() ?? true")
	all[0].within(actsWithin, "the first page is paused", "document.querySelector('#paused')")
	last.press("pause", "shop-2")
	last.within(actsWithin, "shop-2 is paused", is("shop-2", "paused"))
	all[0].within(actsWithin, "the paused page shows what was before", is("shop-2", "running"))
	evaluate[bool](all[0].page, t, "document.querySelector('header button').click() ?? true")
	all[0].within(actsWithin, "the page that resumes shows what is now, without a reload", is("shop-2", "paused")+" && document.querySelector('#connection').innerText === 'live' && document.querySelector('#reloads') === null")
}

// In a browser without SharedWorker, each tab reads by itself, while it can be seen.
func TestControlRoomReadsInTabsThatCanBeSeen(t *testing.T) {
	t.Parallel()
	all, address := emptyTabs(t)
	see := func(tab roomTab, seen bool) {
		evaluate[bool](tab.page, t, fmt.Sprintf("Object.defineProperty(document, 'hidden', {value: %t, configurable: true}).dispatchEvent(new Event('visibilitychange'))", !seen))
	}
	for n, tab := range all {
		_, err := chromedp.Call(tab.page, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: "delete window.SharedWorker"})
		must(t, err)
		tab.opens(address)
		tab.within(opensWithin, fmt.Sprintf("tab %d is live", n+1), live)
		see(tab, n == tabs-1)
	}
	last := all[tabs-1]
	last.press("pause", "shop-1")
	last.within(actsWithin, "shop-1 is paused", is("shop-1", "paused"))
	if !evaluate[bool](all[0].page, t, is("shop-1", "running")+" !== null") {
		t.Error("a tab that cannot be seen has read what happened")
	}
	see(all[0], true)
	all[0].within(actsWithin, "the first tab shows what is now", is("shop-1", "paused")+" && "+live+" && document.querySelector('#reloads') === null")
}

// What a button sends is not sent later: if the browser has no connection for it, the page says so, and gives up.
func TestControlRoomSendsNothingLate(t *testing.T) {
	t.Parallel()
	tab := roomTab{t, browser(t, room(t, program, "--instances", "2", "--redis", ownRedis(t)))}
	tab.within(opensWithin, "the page is live", live)
	evaluate[bool](tab.page, t, `import('/room/api.js').then(({roomToken}) => {
		window.free = new AbortController();
		for (let n = 0; n < 6; n++) fetch('/lab/state?' + n, {headers: {'Shop-Room-Token': roomToken}, signal: free.signal}).catch(() => {});
		return true;
	})`)
	pressed := time.Now()
	tab.press("pause", "shop-1")
	tab.within(buttonLimit+actsWithin, "the page says that there is no response", `/Pause shop-1: no response within 5 s. The effect is unknown/.test(document.querySelector('[role=alert]')?.innerText)`)
	if waited := time.Since(pressed); waited < buttonLimit {
		t.Errorf("the page gave up after %v, want %v", waited, buttonLimit)
	}
	evaluate[bool](tab.page, t, "free.abort() ?? true")
	tab.press("pause", "shop-2")
	tab.within(actsWithin, "shop-2 is paused", is("shop-2", "paused"))
	if !evaluate[bool](tab.page, t, is("shop-1", "running")+" !== null && document.querySelector('[role=alert]') === null") {
		t.Error("shop-1 was paused later, or the page shows an error")
	}
}

// The page says that an instance has gone, and that a room does not accept its address.
func TestControlRoomSaysThatNothingResponds(t *testing.T) {
	t.Parallel()
	shop := spawn(t, "--database", sqliteURL(t))
	instance := roomTab{t, browser(t, shop.url, "net::ERR_")}
	instance.within(opensWithin, "the page is live", "document.querySelector('#connection')?.innerText === 'live' && document.querySelector('#lost') === null")
	shop.kill()
	instance.within(actsWithin, "the page says that the connection is lost", `document.querySelector('#connection').className === 'lost' && document.querySelector('#lost')?.checkVisibility()`)

	address, _, _ := strings.Cut(room(t, program, "--instances", "1"), "#")
	stale := roomTab{t, browser(t, address+"#token=old", "401 (Unauthorized)")}
	stale.within(opensWithin, "the page says which address it needs", `document.querySelector('[role=alert]')?.innerText === 'open the address that shop lab printed, with its token'`)
	accessible(stale.page, t, "a page whose address has an old token")
}
