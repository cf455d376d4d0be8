package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// The storefront says in words what became of the tickets, and who has each. Nothing is an audit string, and the number of tickets that
// were sold twice is that of the orders beyond the stock.
func TestControlRoomSaysWhichTicketsWereSoldTwice(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", sqliteURL(t)).url)
	for lane, want := range map[string]string{
		`{accepted: 0}`:                             "Not audited yet",
		`{accepted: 7}, true`:                       "No ticket was sold twice so far",
		`{accepted: 11}, true`:                      "1 ticket was sold twice",
		`{accepted: 14, books: {oversold: 0}}`:      "4 tickets were sold twice", // the audit is older
		`{accepted: 12, books: {oversold: 3}}`:      "3 tickets were sold twice", // one order had no response
		`{accepted: 25, books: {oversold: 15}}`:     "All 10 tickets were sold twice or more, to 25 buyers",
		`{accepted: 9, books: {lost_updates: 5}}`:   "5 updates of the stock are lost so far",
		`{accepted: 9, books: {undersold: 1}}`:      "1 ticket can no longer be sold",
		`{accepted: 9, books: {broken: ['fence']}}`: "Stock and orders disagree",
		`{accepted: 9, books: {error: 'broken'}}`:   "The audit failed",
		`{accepted: 10, books: {broken: null}}`:     "Each ticket was sold once",
		`{accepted: 9, books: {broken: null}}`:      "No ticket was sold twice",
	} {
		lane, running := strings.CutSuffix(lane, ", true")
		if got := evaluate[string](page, t, fmt.Sprintf("import('/room/tickets.js').then(({verdict}) => verdict(%s, 10, %t).text)", lane, running)); got != want {
			t.Errorf("%s: the page says %q, want %q", lane, got, want)
		}
	}
	for ticket, want := range map[int]string{1: "3: 11,12,13", 2: "3: 21,22", 3: "2: 31,32", 10: "2: 101,102"} {
		got := evaluate[string](page, t, fmt.Sprintf(`import('/room/tickets.js').then(({buyersOf}) => {
			const buyers = [11, 21, 31, 41, 51, 61, 71, 81, 91, 101, 12, 22, 32, 42, 52, 62, 72, 82, 92, 102, 13]; // the room keeps no more
			const {count, of} = buyersOf(%d, {accepted: 22, buyers}, 10);
			return count + ': ' + of;
		})`, ticket))
		if got != want {
			t.Errorf("ticket %d has the buyers %s, want %s", ticket, got, want)
		}
	}
	// The axis of a chart is as wide as its numbers.
	if over := evaluate[float64](page, t, `import('/room/chart.js').then(({wide}) => {
		const pen = document.createElement('canvas').getContext('2d');
		pen.font = '12px system-ui, sans-serif';
		return Math.max(...['0', '950', '10,000', '1,234,567'].map((text) => pen.measureText(text).width + 10 - wide(null, [text])));
	})`); over > 0 {
		t.Errorf("a number is %.0f pixels wider than its axis", over)
	}
	ofStory(t, func(expression string) string { return evaluate[string](page, t, expression) })
}

// ofStory checks the sentence about a button: it says what was done, and what the events have shown since.
func ofStory(t *testing.T, evaluate func(expression string) string) {
	t.Helper()
	const story = `Promise.all(['state.js', 'story.js'].map((f) => import('/room/' + f))).then(([{State}, {tell}]) => {
		const s = new State(() => {}), begin = Date.now() - 20_000, at = (ms) => new Date(begin + ms).toISOString();
		const lock = (holder, more) => s.apply({type: 'lock', at: at(0), lock: {sku: %q, holder, ...more}});
		lock('shop-1', {count: 1, leases: [{fence: 700, asked: at(0), from: at(0), until: at(400)}]});
		%s
		const sale = (accepted, failed) => ({running: true, lanes: [{sku: 'x', accepted, failed}]});
		const said = () => tell(press, s, {sale: sale(52, 1)}, begin + %d), press = {action: %q, about: 'shop-2', at: begin + 1000, sale: sale(10, 0), facts: []}, first = said();
		for (let n = 0; n < 3000; n++) lock('shop-3', {count: 1, leases: [{fence: 10_000 + n, asked: at(9000), from: at(9000), until: at(9001)}]}); // the page forgets
		if (first.includes('expired after')) lock('shop-2', {count: 1, leases: [{fence: 20_000, asked: at(500), from: at(1500), until: at(9000), expires: at(3000)}]}); // another one of that moment
		return said() === first ? first : first + ', and then ' + said();
	})`
	const lost = `lock('shop-2', {count: 1, leases: [{fence: 710, asked: at(400), from: at(900), until: at(6000), expires: at(2400)}]});
		lock('shop-3', {count: 1, leases: [{fence: 712, asked: at(900), from: at(2500), until: at(2600)}]});`
	const refused = lost + `lock('shop-2', {refused: [{fence: 710, accepted: 712, at: at(6000)}]});`
	const since = "; since then 42 buyers got a ticket, and 1 got no response."
	for _, c := range []struct {
		sku, events, action string
		after               int
		want                string
	}{
		{"redis-x", "", "late", 2000, "shop-2 is paused for 5 s" + since},
		{"redis-x", "", "late", 12_000, "shop-2 is paused for 5 s; it held no lease at that moment, so none expired" + since},
		{"redis-x", lost, "late", 5000, "shop-2 is paused for 5 s; its lease #2 expired after 1.5 s; shop-3 got #3" + since},
		{"redis-x", refused, "late", 9000, "shop-2 is paused for 5 s; its lease #2 expired after 1.5 s; shop-3 got #3; the late write of #2 was refused by the row" + since},
		{"redis-unfenced-x", lost, "late", 9000, "shop-2 is paused for 5 s; its lease #2 expired after 1.5 s; shop-3 got #3; the row accepted the late write of #2, as it checks no fencing token" + since},
		{"redis-x", refused, "cut-off", 9000, "shop-2 was cut off from Redis, and cannot take or renew a lease there" + since},
	} {
		if got := evaluate(fmt.Sprintf(story, c.sku, c.events, c.after, c.action)); got != c.want {
			t.Errorf("%s of %s: the page says %q, want %q", c.action, c.sku, got, c.want)
		}
	}
}
