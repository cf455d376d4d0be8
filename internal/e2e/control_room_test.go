package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// roomPage is the page of a control room in Chromium, and the database of the room.
type roomPage struct {
	t          *testing.T
	tab        context.Context //nolint:containedctx // It is the tab of the browser.
	url, token string          // of the room
	database   *sqlstore.Store
	yes        atomic.Bool            // the response to what the page asks
	asked      atomic.Pointer[string] // what it has asked
}

// openRoom starts a room on a MariaDB database and opens its page, where the browser may report the expected errors.
func openRoom(t *testing.T, program string, flags []string, expected ...string) *roomPage {
	t.Helper()
	database := testbedtest.Database(t)
	address := room(t, program, append(flags, "--database", database)...)
	p := &roomPage{t: t, database: books(t, database), tab: browser(t, address, expected...)}
	p.url, p.token, _ = strings.Cut(address, "/#token=")
	dialogs := chromedp.Events(p.tab, cdppage.JavascriptDialogOpening)
	go func() { // ends with the tab
		for dialog, err := range dialogs {
			if err != nil {
				return
			}
			p.asked.Store(&dialog.Message)
			if _, err := chromedp.Call(p.tab, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: p.yes.Load()}); err != nil {
				return
			}
		}
	}()
	return p
}

// text returns the text of an element, or nothing if the page does not have it.
func (p *roomPage) text(selector string) string {
	p.t.Helper()
	return evaluate[string](p.tab, p.t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// wait waits until an expression is true on the page.
func (p *roomPage) wait(what, expression string) {
	p.t.Helper()
	testbedtest.Eventually(p.t, what, func() bool { return evaluate[bool](p.tab, p.t, "!!("+expression+")") })
}

// click waits for a button and presses it.
func (p *roomPage) click(selector string) {
	p.t.Helper()
	p.wait("there is a button "+selector, fmt.Sprintf("((b) => b && (b.click() ?? true))(document.querySelector(%q))", selector))
}

// press presses the button of an action: of a store if the instance is empty.
func (p *roomPage) press(action, instance string) {
	p.t.Helper()
	p.click(fmt.Sprintf("button[data-action='%s'][data-instance='%s']", action, instance))
}

// is waits until the page shows an instance in a state. The page must show no error.
func (p *roomPage) is(instance, state string) {
	p.t.Helper()
	p.wait(instance+" is "+state, fmt.Sprintf("document.querySelector('#machines [data-name=%q][data-state=%q]')", instance, state))
	p.unhurt()
}

// unhurt fails the test if the page shows an error.
func (p *roomPage) unhurt() {
	p.t.Helper()
	if alert := p.text("[role=alert]"); alert != "" {
		p.t.Error(alert)
	}
}

// sell starts a sale with the form, and waits until the page shows it, or an error.
func (p *roomPage) sell(first, second string, units, attempts, buyers int) {
	p.t.Helper()
	before := p.text(".lanes h3 code")
	p.wait("a sale can be started", "document.querySelector('form#sale button:not([type], :disabled)')")
	evaluate[bool](p.tab, p.t, fmt.Sprintf(`(() => {
		const form = document.querySelector('form#sale');
		form.first.value = %q; form.second.value = %q; form.units.value = %d; form.attempts.value = %d; form.buyers.value = %d;
		form.requestSubmit();
		return true;
	})()`, first, second, units, attempts, buyers))
	p.wait("the sale is shown", fmt.Sprintf("document.querySelector('[role=alert]') || (document.querySelector('.lanes h3 code')?.innerText ?? %q) !== %q", before, before))
}

// ended waits until the sale has ended and was audited.
func (p *roomPage) ended() {
	p.t.Helper()
	p.wait("the sale has ended and was audited", "document.querySelector('[role=alert]') || document.querySelector('form#sale button:not([type])')?.disabled === false")
	p.unhurt()
}

// figures compares each number of a lane, and of its row in the stock table, with the audit of the service and with the database.
func (p *roomPage) figures(strategy string, attempts int64) stock.Audit {
	p.t.Helper()
	lane := fmt.Sprintf("article[data-strategy='%s'] ", strategy)
	sku := p.text(lane + "h3 code")
	audits, err := p.database.Audit(p.t.Context(), sku)
	if err != nil {
		p.t.Fatal(err)
	}
	a, served := audits[0], httpapi.Audit{}
	decode(p.t, (&instance{url: p.url}).want(p.t, http.StatusOK, "GET", "/api/v1/audit?sku="+sku, ""), &served)
	for i := range served.Skus { // since which audit it looks is its own affair
		served.Skus[i].Checked, served.Skus[i].RightTo, served.Skus[i].RightAt = 0, 0, nil
	}
	if diff := cmp.Diff([]httpapi.AuditedSKU{{
		SKU: sku, Strategy: strategy, Stocked: a.Stocked, OnHand: a.OnHand, Reserved: a.Reserved, Sold: a.Sold, Accepted: a.Accepted(), Oversold: a.Oversold(),
		Undersold: a.Undersold(), LostUpdates: a.LostUpdates(), Overdue: a.Overdue, LedgerOk: a.LedgerOK(), Ok: a.OK(),
	}}, served.Skus); diff != "" {
		p.t.Errorf("the audit of the service differs from the database (-want +got):\n%s", diff)
	}
	verdict := "Each ticket was sold once"
	if over := a.Oversold(); over > a.Stocked {
		verdict = fmt.Sprintf("All %d tickets were sold twice or more, to %d buyers", a.Stocked, a.Accepted())
	} else if over > 0 {
		verdict = fmt.Sprintf("%d tickets were sold twice", over)
	} else if !a.OK() {
		p.t.Errorf("%s: %v", sku, a.Broken())
	}
	if got := p.text(lane + ".verdict"); got != verdict {
		p.t.Errorf("%s: the verdict is %q, want %q", sku, got, verdict)
	}
	all := evaluate[map[string]string](p.tab, p.t, fmt.Sprintf("Object.fromEntries([...document.querySelectorAll(%q)].map((e) => [e.dataset.figure, e.innerText]))", lane+"[data-figure]"))
	failed, _ := strconv.ParseInt(all["failed"], 10, 64) // as orders without a response were accepted or not
	for figure, want := range map[string]int64{
		"accepted": a.Accepted(), "rejected": attempts - a.Accepted() - failed, "failed": failed, "stored": a.Accepted(), "left": a.OnHand - a.Reserved, "lost": a.LostUpdates(),
	} {
		if all[figure] != strconv.FormatInt(want, 10) {
			p.t.Errorf("%s: %s is %q on the page, want %d as in the database", sku, figure, all[figure], want)
		}
	}
	if len(all) != 6 {
		p.t.Errorf("%s: the page shows %v; compare each figure", sku, all)
	}
	p.named(strategy, sku, a.Stocked, a.Accepted()-failed)
	show(p.tab, p.t, "stock")
	row := fmt.Sprintf("%s\t%s\t%d\t%d\t%d", sku, strategy, a.OnHand, a.Reserved, a.OnHand-a.Reserved)
	p.wait("the stock table shows "+row, fmt.Sprintf("[...document.querySelectorAll('#stock tr')].some((r) => r.innerText === %q)", row))
	return a
}

// named compares the two buyers of a ticket that was sold twice, and that of the latest sale, with the orders of the SKU.
func (p *roomPage) named(strategy, sku string, units, accepted int64) {
	p.t.Helper()
	customers := make(map[string]bool)
	for query := "/api/v1/orders?limit=100&sku=" + sku; ; {
		var page struct {
			Orders []struct {
				CustomerID string `json:"customer_id"`
			}
			Next string
		}
		decode(p.t, (&instance{url: p.url}).want(p.t, http.StatusOK, "GET", query, ""), &page)
		for _, o := range page.Orders {
			customers[o.CustomerID] = true
		}
		if page.Next == "" {
			break
		}
		query = "/api/v1/orders?limit=100&sku=" + sku + "&cursor=" + page.Next
	}
	lane := fmt.Sprintf("article[data-strategy='%s'] ", strategy)
	ticket := (accepted-1)%units + 1
	latest := p.text(lane + ".pointed")
	if !strings.HasPrefix(latest, fmt.Sprintf("Latest sale. Ticket %d: ", ticket)) {
		p.t.Errorf("%s: %q, want ticket %d of %d, as %d orders were accepted", sku, latest, ticket, units, accepted)
	}
	red, twice := p.text(lane+".twice li"), accepted > units
	if twice != strings.Contains(red, " and buyer-") {
		p.t.Errorf("%s: %d orders for %d tickets, and the page names %q", sku, accepted, units, red)
	}
	names := regexp.MustCompile(`buyer-\d+`).FindAllString(latest+red, -1)
	if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return !customers[name] }) {
		p.t.Errorf("%s: the page names %v; not all of them have an order", sku, names)
	}
}

// lateIsRefused is true of a page that shows a late holder, its refused write, and what happened.
const lateIsRefused = `document.querySelector('#refused-writes')?.innerText !== '0' && /\d+ late holders? overlapped \d+ lease/.test(document.querySelector('.counts')?.innerText)
	&& document.querySelector('#sold-twice').innerText === '0'
	&& /its lease #\d+ expired after \d+\.\d s; shop-\d got #\d+; the late write of #\d+ was refused by the row; since then \d+ buyers/.test(document.querySelector('#story li')?.innerText)`

// The control room shows that naive oversells and redis does not, as the database says. The same holds after the
// buttons of the page have killed one instance, paused another, and cut the connections of the third.
func TestControlRoomSellsAndBreaks(t *testing.T) {
	t.Parallel()
	p := openRoom(t, product(t), []string{"--redis", ownRedis(t)}, "net::ERR_", "Service Unavailable", "Bad Gateway") // as what it reads from is killed
	p.sell("naive", "redis", 50, 400, 32)
	p.ended()
	if a := p.figures("naive", 400); a.Oversold() == 0 {
		t.Error("naive has not oversold")
	}
	if a := p.figures("redis", 400); a.Accepted() != 50 {
		t.Errorf("redis sold %d of 50", a.Accepted())
	}

	must(t, chromedp.Do(p.tab, chromedp.Reload()))
	p.wait("a page that is opened later shows the leases of the sale", "document.querySelector('#lane-title code')?.innerText.startsWith('redis-') && document.querySelectorAll('.lanes article').length === 2")

	p.sell("redis", "", 100_000, 1_000_000, 3) // so that it lasts longer than the faults
	const accepted = "Number(document.querySelector('[data-strategy=redis] [data-figure=accepted]')?.innerText)"
	p.wait("the second sale is under way", "document.querySelectorAll('.lanes article').length === 1 && "+accepted+" > 0")
	for _, action := range []string{"late", "cut-off"} {
		button := fmt.Sprintf("document.querySelector('[data-action=%s]')", action)
		line := "document.getElementById(" + button + ".getAttribute('aria-describedby'))"
		if what := evaluate[string](p.tab, t, line+"?.checkVisibility() ? "+line+".innerText : ''"); !strings.HasPrefix(what, p.text("[data-action="+action+"]")+": ") {
			t.Errorf("the page describes the button %s as %q", action, what)
		}
	}
	// A process that is late writes with a token that the row no longer accepts. Its lease overlaps those of the instances. The page forgets
	// a lease after 2000 others, so all of it is to be seen at one moment. On a busy machine, instances may be late, too.
	var pressed time.Time
	testbedtest.Eventually(t, "a late write is refused, and the page shows two concurrent holders and what happened", func() bool {
		if time.Since(pressed) > 45*time.Second { // on a busy machine, it gives up after 30 s
			p.click("[data-action=late-holder]")
			pressed = time.Now()
		}
		return evaluate[bool](p.tab, t, "!!("+lateIsRefused+")")
	})
	now := fmt.Sprint(evaluate[int](p.tab, t, accepted))
	p.click("#replay button")
	p.wait("the page shows an earlier moment", "document.querySelector('#replay output').innerText !== '' && "+accepted+" < "+now)
	p.click("#replay button")
	p.wait("the page shows the present", "document.querySelector('#replay output').innerText === '' && "+accepted+" >= "+now)
	p.yes.Store(true)
	p.press("kill", "shop-1") // which also carries the page's stream of events
	p.is("shop-1", "killed")
	p.press("pause", "shop-2")
	p.is("shop-2", "paused")
	p.press("cut-off", "shop-3")
	p.press("reconnect", "shop-3")
	p.unhurt()
	p.press("resume", "shop-2")
	p.is("shop-2", "running")
	p.press("start", "shop-1")
	p.is("shop-1", "running")
	p.wait("the sale continues after the faults", fmt.Sprintf("%s >= %d", accepted, 100+evaluate[int](p.tab, t, accepted)))
	p.click("form#sale button[type=button]")
	p.ended()
	sku := p.text("article[data-strategy=redis] h3 code")
	a, err := p.database.Audit(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if a[0].Oversold() != 0 || len(a[0].Broken()) != 0 {
		t.Errorf("%s: %v", sku, a[0].Broken())
	}
	p.sell("redis", "", 50, 400, 32)
	p.ended()
	if a := p.figures("redis", 400); a.Accepted() != 50 {
		t.Errorf("after the faults, redis sold %d of 50", a.Accepted())
	}
	p.wait("the page follows the events again", "document.querySelector('#connection').innerText === 'live'")
}

// pagePolicy lets the page load scripts and styles of its own origin only.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

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
		"trace, no token":    {"GET", "/lab/orders/a/trace", address, "", "", http.StatusUnauthorized},
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
		if got := resp.Header.Get("Content-Security-Policy"); c.path == "/" && got != pagePolicy {
			t.Errorf("the policy of the page is %q, want %q", got, pagePolicy)
		}
	}
}

// The room has a database of its own, and says how to audit it.
func TestControlRoomNamesItsBooks(t *testing.T) {
	t.Parallel()
	_, database, named := strings.Cut(startRoom(t, program, "--instances", "1").books, "--database ")
	if code, out, stderr := call(t, noEnv, "audit", "--database", strings.Trim(database, "'")); !named || code != 0 || !strings.Contains(out, "VERDICT") {
		t.Errorf("audit of %q: exit code %d: %s%s", database, code, out, stderr)
	}
}
