package e2e_test

import (
	"fmt"
	"testing"

	"example.com/shop/internal/testbed/testbedtest"
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
		{lease(1, "01"), lease(5, "09"), lease(4, "07"), "", 1}, // nobody knows whether the first lease of a lasted until then
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
		const real = window.fetch, asked = [], stop = new AbortController();
		await new Promise((done) => {
			window.fetch = async (path, {headers}) => {
				if (path !== '/api/v1/events') throw new TypeError('the test has cut it off');
				if (asked.push(headers['Last-Event-ID'] ?? 'everything') === 2) done();
				return new Response('event: reset\nid: 5\n\n');
			};
			new State(() => {}).run(stop.signal);
		});
		stop.abort();
		window.fetch = real;
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
