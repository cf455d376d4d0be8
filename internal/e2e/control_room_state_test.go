package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The page counts leases that two instances used at the same time. Turns of one instance, other SKUs and leases after each
// other are none.
func TestControlRoomCountsConcurrentHolders(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", testbedtest.Database(t)).url)
	for leases, want := range map[string]int{
		`{holder: 'a', sku: 's', from: 0, until: 10}, {holder: 'b', sku: 's', from: 10, until: 20}`:                                             0,
		`{holder: 'a', sku: 's', from: 0, until: 10}, {holder: 'a', sku: 's', from: 5, until: 20}`:                                              0,
		`{holder: 'a', sku: 's', from: 0, until: 10}, {holder: 'b', sku: 'other', from: 5, until: 20}`:                                          0,
		`{holder: 'b', sku: 's', from: 9, until: 20}, {holder: 'a', sku: 's', from: 0, until: 10}`:                                              1,
		`{holder: 'a', sku: 's', from: 0}, {holder: 'b', sku: 's', from: 50}`:                                                                   1, // one that does not end
		`{holder: 'a', sku: 's', from: 0, until: 30}, {holder: 'b', sku: 's', from: 5, until: 9}, {holder: 'b', sku: 's', from: 10, until: 20}`: 2,
	} {
		if got := evaluate[int](page, t, "import('/room/state.js').then((m) => m.doubleHolds(["+leases+"], 100).length)"); got != want {
			t.Errorf("%s: %d times two concurrent holders, want %d", leases, got, want)
		}
	}
}

// An event has the latest leases only. An instance uses its leases one after the other, so one whose end was not sent has ended. It was in
// use until the event that had it, at least.
func TestControlRoomEndsLeasesWhoseEndIsMissing(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", testbedtest.Database(t)).url)
	lease := func(fence int, second string) string {
		return fmt.Sprintf("{fence: %d, asked: '2026-01-01T00:00:00Z', from: '2026-01-01T00:00:%sZ'}", fence, second)
	}
	const state = `import('/room/state.js').then(({State, doubleHolds}) => {
		const s = new State(() => {});
		for (const [holder, leases] of [['a', [%s, %s]], ['b', [%s]]]) s.apply({type: 'lock', at: %q, lock: {sku: 's', holder, leases}});
		return doubleHolds([...s.leases.values()], Date.parse('2026-01-01T00:00:30Z')).length;
	})`
	for _, c := range []struct {
		a1, a2, b, at string
		want          int
	}{
		{lease(1, "01"), lease(3, "03"), lease(4, "05"), "", 1}, // the latest lease of a may be in use
		{lease(1, "01"), lease(5, "09"), lease(4, "07"), "", 1}, // the first lease of a may have ended before
		{lease(1, "01"), lease(5, "09"), lease(4, "07"), "2026-01-01T00:00:08Z", 2},
		{lease(1, "01"), lease(2, "02"), lease(3, "04"), "2026-01-01T00:00:08Z", 1}, // the first lease of a lasts until the second at most
	} {
		if got := evaluate[int](page, t, fmt.Sprintf(state, c.a1, c.a2, c.b, c.at)); got != c.want {
			t.Errorf("%v: %d times two concurrent holders, want %d", c, got, c.want)
		}
	}
}

// A holder that was killed tells of no end of its lease. The lease ends for the page when the instance has left, or when the
// page has missed events.
func TestControlRoomEndsLeasesOfWhoHasLeft(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", testbedtest.Database(t)).url)
	for event, want := range map[string]int{
		`{type: 'member', member: {name: 'other', left: true}}`: 1,
		`{type: 'member', member: {name: 'a', left: true}}`:     0,
	} {
		got := evaluate[int](page, t, `import('/room/state.js').then(({State, doubleHolds}) => {
			const s = new State(() => {});
			const hold = (holder, fence, from) => s.apply({type: 'lock', at: from, lock: {sku: 's', holder, leases: [{fence, asked: from, from}]}});
			hold('a', 1, '2026-01-01T00:00:01Z');
			s.apply(`+event+`);
			hold('b', 2, '2026-01-01T00:00:09Z');
			return doubleHolds([...s.leases.values()], Date.parse('2026-01-01T00:00:30Z')).length;
		})`)
		if got != want {
			t.Errorf("after %s: %d times two concurrent holders, want %d", event, got, want)
		}
	}
}

// A reload that fails is repeated: the page does not continue after a gap. A late event does not open a settled order again.
func TestControlRoomRepeatsAReloadThatFailed(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", testbedtest.Database(t)).url)
	asked := evaluate[string](page, t, `import('/room/state.js').then(async ({State}) => {
		const real = window.fetch, worker = window.SharedWorker, asked = [], stop = new AbortController();
		window.SharedWorker = undefined; // so that the page itself reads
		await new Promise((done) => {
			window.fetch = async (path, {headers}) => {
				if (path !== '/api/v1/events') throw new TypeError('the test has cut it off');
				if (asked.push(headers['Last-Event-ID'] ?? 'everything') === 2) done();
				return new Response('event: reset\nid: 5\n\n');
			};
			new State(() => {}).run(stop.signal);
		});
		stop.abort();
		Object.assign(window, {fetch: real, SharedWorker: worker});
		return asked.join();
	})`)
	if asked != "everything,everything" {
		t.Errorf("the page asked for %s", asked)
	}
	status := evaluate[string](page, t, `import('/room/state.js').then(({State}) => {
		const s = new State(() => {});
		for (const status of ['PENDING', 'PAID', 'PENDING']) s.apply({type: 'order', order: {id: 'o', status}});
		return s.orders.get('o').status;
	})`)
	if status != "PAID" {
		t.Errorf("the order is %s", status)
	}
}

// A lease that its holder did not release ends at its expiry, unless an event says that the holder worked on. The lane shows which leases
// have expired, and how many orders wait.
func TestControlRoomEndsLeasesAtTheirExpiry(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", testbedtest.Database(t)).url)
	const lane = `Promise.all(['state.js', 'lane.js', 'vendor/htm-preact.js'].map((f) => import('/room/' + f))).then(([{State}, {Lane}, {h, render}]) => {
		const s = new State(() => {}), begin = Date.now() - 5000, at = (ms) => new Date(begin + ms).toISOString();
		const lock = (holder, more) => s.apply({type: 'lock', at: at(0), lock: {sku: 's', holder, ...more}});
		lock('a', {leases: [{fence: 1, asked: at(0), from: at(0), expires: at(1000)}]});
		lock('b', {leases: [{fence: 2, asked: at(0), from: at(1500), until: at(2500)}], waiting: 3});
		lock('c', {waiting: 4});
		s.apply({type: 'lock', lock: {sku: 'other', holder: 'a', waiting: 9}});
		%s
		const place = document.body.appendChild(document.createElement('div'));
		render(h(Lane, {state: s, sku: 's', paused: false}), place);
		const text = (e) => e.textContent.replace(/\s+/g, ' ').trim();
		const rows = [...place.querySelectorAll('tbody tr')].map((r) => [...r.cells].map(text).join(' '));
		const shown = [...rows, text(place.querySelector('#double-holds')), text(place.querySelector('#waiting-orders'))].join('; ');
		render(null, place);
		place.remove();
		return shown;
	})`
	const b = "b #2 1000 ms; "
	for event, want := range map[string]string{
		"": b + "a #1 expired after 1000 ms; 0; 7",
		"lock('a', {leases: [{fence: 1, asked: at(0), from: at(0), until: at(2000), expires: at(1000)}]})": b + "a #1 2000 ms expired after 1000 ms; 1; 7", // it was late
		"lock('a', {leases: [{fence: 1, asked: at(0), from: at(0), until: at(900)}]})":                     b + "a #1 900 ms; 0; 7",                        // the news of its end was late
		"lock('a', {leases: [{fence: 1, asked: at(0), from: at(0), expires: at(60000)}]})":                 b + "a #1 in use; 1; 7",                        // it was renewed
		"s.apply({type: 'member', member: {name: 'a', left: true}})":                                       b + "a #1 expired after 1000 ms; 0; 7",
		"s.apply({type: 'member', member: {name: 'b', left: true}})":                                       b + "a #1 expired after 1000 ms; 0; 4",
		"lock('c', {})": b + "a #1 expired after 1000 ms; 0; 3",
	} {
		if got := evaluate[string](page, t, fmt.Sprintf(lane, event)); got != want {
			t.Errorf("after %q: %s; want %s", event, got, want)
		}
	}
}

// The number of a grant has the order of its fencing token, whatever the last digits of the token are. It counts grants that no event has, a lease
// that was renewed once, and a refused one of which nothing is known.
func TestControlRoomNumbersGrantsByToken(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", testbedtest.Database(t)).url)
	got := evaluate[string](page, t, `import('/room/state.js').then(({State}) => {
		const s = new State(() => {}), at = '2026-01-01T00:00:00Z', first = 1795628409551130;
		const lock = (holder, count, fences, refused = []) => s.apply({type: 'lock', at, lock: {sku: 's', holder, count, refused, leases: fences.map((fence) => ({fence, asked: at, from: at}))}});
		const numbers = () => [...s.ordinals('s')].map(([fence, n]) => fence - first + ':' + n).join(' ');
		lock('a', 1, [first]);
		lock('b', 5, [first + 7149897, first + 12901350]); // seven digits fall twice
		lock('a', 0, [first]);
		lock('c', 1, [first + 9000000]); // its event is late
		const before = numbers();
		lock('c', 0, [], [{fence: first - 20, accepted: first + 12901350, at}]);
		const refused = numbers(), lacks = () => [-1, 0].map((ms) => s.lacks('s', Date.parse(at) + ms)), kept = lacks();
		for (let n = 0; n < 2000; n++) s.apply({type: 'lock', at, lock: {sku: 'other', holder: 'a', count: 1, leases: [{fence: n, asked: at, from: at}]}});
		lock('b', 1, [first + 13000000]);
		return [before, refused, numbers(), kept, lacks()].join('; ');
	})`)
	const want = "0:1 7149897:5 9000000:6 12901350:7; -20:1 0:2 7149897:6 9000000:7 12901350:8; -20:8 12901350:9 13000000:10; false,false; true,false"
	if got != want {
		t.Errorf("tokens and numbers, and whether leases are missing: %s; want %s", got, want)
	}
}

// The state of the page does not grow with the events that it has applied.
func TestControlRoomStateDoesNotGrow(t *testing.T) {
	t.Parallel()
	page := browser(t, spawn(t, "--database", testbedtest.Database(t)).url)
	const apply = `import('/room/state.js').then(({State}) => {
		const kept = window.kept ??= {state: new State(() => {}), n: 0}, at = '2026-01-01T00:00:00.123456789Z';
		for (const end = kept.n + %d; kept.n < end; kept.n++) {
			const n = kept.n, sku = 'sku-' + n %% 300, id = 'order-' + n, name = 'shop-' + n;
			const leases = Array.from({length: 4}, (_, i) => ({fence: 4 * n + i, asked: at, from: at, ...(i < 3 ? {until: at} : {expires: at})}));
			for (const event of [
				{type: 'lock', lock: {sku, holder: 'shop-' + n %% 3, leases, refused: [{fence: n, accepted: n + 1, at}], waiting: n %% 2}},
				{type: 'lock', lock: {sku: 'sold-' + n, holder: 'shop-1', leases: leases.slice(0, 1), waiting: 1}},
				{type: 'stock', stock: {sku: 'sold-' + n, version: n}},
				{type: 'order', order: {id, status: n %% 2 ? 'EXPIRED' : 'PENDING', items: [], expires_at: at}},
				{type: 'member', member: {name, left: false}}, {type: 'member', member: {name, left: true}},
			]) kept.state.apply(JSON.parse(JSON.stringify({at, instance: 'shop-1', ...event})));
		}
		return kept.n;
	})`
	evaluate[int](page, t, fmt.Sprintf(apply, 6000)) // fills all that it keeps
	footprintOf(page, t)                             // the first one leaves something of its own
	evaluate[int](page, t, fmt.Sprintf(apply, 6000))
	before := footprintOf(page, t)
	n := evaluate[int](page, t, fmt.Sprintf(apply, testbedtest.Size(10_000, 100_000)))
	after := footprintOf(page, t)
	const most = 200_000 // bytes; ten for each event are half a megabyte
	if grown := after.Heap - before.Heap; grown > most {
		t.Errorf("after %d times six events the heap has grown by %.0f bytes, from %.0f", n, grown, before.Heap)
	}
}

// roomOf opens a room with one instance on SQLite, and waits until its page shows what was measured.
func roomOf(t *testing.T, expected ...string) (page context.Context, evaluates func(condition string) bool, wait func(what, condition string)) {
	t.Helper()
	page = browser(t, room(t, program, "--instances", "1", "--redis", ownRedis(t)), expected...)
	evaluates = func(condition string) bool { return evaluate[bool](page, t, condition) }
	wait = func(what, condition string) {
		t.Helper()
		testbedtest.Eventually(t, what, func() bool { return evaluates(condition) })
	}
	wait("the room is open and measured", `document.querySelector('form#sale button:not(:disabled)') !== null && /orders in flight/.test(document.querySelector('[data-name=shop-1]')?.innerText)
		&& document.querySelector('[data-store=redis] [data-figure=memory]') !== null && document.querySelector('#connection').innerText === 'live'`)
	return page, evaluates, wait
}

// sellOf starts a sale by redis with the form of the page.
func sellOf(units, attempts, buyers, wait int) string {
	return fmt.Sprintf(`(() => {
		const form = document.querySelector('form#sale'), values = {first: 'redis', second: '', units: %d, attempts: %d, buyers: %d, wait: %d};
		for (const name in values) form[name].value = values[name];
		form.requestSubmit();
		return true;
	})()`, units, attempts, buyers, wait)
}

// While the page is paused, nothing on it moves, whatever its buttons do. It catches up when it resumes.
func TestControlRoomStandsStillWhilePaused(t *testing.T) {
	t.Parallel()
	page, evaluates, wait := roomOf(t)
	evaluates(sellOf(100, 110, 1, 0)) // orders whose time counts down
	wait("the page shows an order", "document.querySelector('[data-strategy=redis] [data-verdict=exact]') !== null && document.querySelectorAll('#orders tbody tr').length > 0")
	const pause = "document.querySelector('header button').click() ?? true"
	evaluates(pause)
	wait("the page says that it is paused", "document.querySelector('#connection').innerText === 'paused' && document.querySelector('#paused')?.checkVisibility() === true")
	const looks = "document.querySelector('main').innerHTML + [...document.querySelectorAll('canvas')].map((c) => c.toDataURL()).join()"
	const drawn = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn, 100))))"
	evaluates(drawn + ".then(() => (window.stood = " + looks + ") !== '')")
	for _, sale := range []string{"first", "second"} { // during the second one, a page that is not paused draws the first one
		evaluates(sellOf(200, 300, 2, 0))
		wait("the "+sale+" sale is over", `import('/room/api.js').then(async ({stream}) => {
			const stop = new AbortController();
			for await (const {data: {sale}} of stream('/lab/state', '', stop.signal)) {
				stop.abort();
				const over = sale?.running === false && sale.lanes[0].accepted === 200 && sale.lanes[0].sku !== window.sold;
				if (over) window.sold = sale.lanes[0].sku;
				return over;
			}
		})`)
	}
	for range 2 { // the page is drawn again
		evaluates("document.querySelector('header button[lang]').click() ?? true")
	}
	if at := evaluate[string](page, t, drawn+".then(() => ((was, is) => { for (let i = 0; i < Math.max(was.length, is.length); i++) if (was[i] !== is[i]) return was.slice(i - 99, i + 99) + ' | ' + is.slice(i - 99, i + 99); return ''; })(window.stood, "+looks+"))"); at != "" {
		t.Errorf("a paused page has changed: %s", at)
	}
	evaluates(pause)
	wait("the page catches up", `document.querySelector('#connection').innerText === 'live' && document.querySelector('#paused') === null
		&& document.querySelector('[data-strategy=redis] [data-figure=accepted]')?.innerText === '200' && document.querySelector('#lane-title code')?.innerText === window.sold`)
	if evaluates("document.querySelector('#reloads') !== null") {
		t.Error("the page has reloaded, though the instance has the events that it missed")
	}
}

// The cards of the stores have figures of the stores as instances reach them, and say why SQLite has no buttons.
func TestControlRoomAsksTheStores(t *testing.T) {
	t.Parallel()
	_, evaluates, wait := roomOf(t, "503 (Service Unavailable)")
	const card = "document.querySelector('[data-store=%s]').innerText"
	shows := func(store, pattern string) string { return fmt.Sprintf("/%s/.test("+card+")", pattern, store) }
	figures, silent := shows("redis", `redis · \d+\.\d MB · \d+\.\d ms`), shows("redis", "redis · no response")
	database := shows("database", `sqlite · \d+\.\d ms\s+SQLite is a file[^]*--database mysql`)
	wait("the cards have figures", figures+" && "+database)
	evaluates("document.querySelector('[data-action=redis-pause]').click() ?? true")
	wait("a paused Redis does not respond", silent+" && "+database)
	evaluates("document.querySelector('[data-action=redis-resume]').click() ?? true")
	wait("Redis responds again", figures)
}

// Buyers who are ready to wait for units of a SKU are in the wait list. The page shows their number.
func TestControlRoomShowsTheWaitList(t *testing.T) {
	t.Parallel()
	_, evaluates, wait := roomOf(t)
	evaluates(sellOf(1, 9, 9, 30))
	wait("eight orders wait", "/0 of 64 orders in flight · 8 wait for units/.test(document.querySelector('[data-name=shop-1]').innerText)")
	evaluates("document.querySelector('form#sale button[type=button]').click() ?? true")
}
