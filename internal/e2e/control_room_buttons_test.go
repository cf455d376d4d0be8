package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// roomState is what a room says of its processes and stores.
type roomState struct {
	Instances []struct {
		Name, State string
		PID         int
		CutOff      bool `json:"cut_off"`
	}
	Redis, Database struct{ State string }
}

// state returns the present state of the room.
func (p *roomPage) state() (s roomState) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/lab/state", nil)
	must(p.t, err)
	req.Header.Set("Shop-Room-Token", p.token)
	resp, err := http.DefaultClient.Do(req)
	must(p.t, err)
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			decode(p.t, data, &s)
			return s
		}
	}
	p.t.Fatalf("the room does not send its state: status %d", resp.StatusCode)
	return s
}

// process returns the process of an instance, or 0 if the instance is not running.
func (p *roomPage) process(name string) int {
	p.t.Helper()
	for _, in := range p.state().Instances {
		if in.Name == name && in.State == "running" {
			return in.PID
		}
	}
	return 0
}

// address returns the URL of an instance, as the cluster knows it.
func (p *roomPage) address(instance string) string {
	p.t.Helper()
	for _, m := range stateOf(p.t.Context(), p.t, http.DefaultClient, p.url).Members {
		if m.Name == instance {
			return "http://" + m.Address
		}
	}
	return "http://127.0.0.1:0" // no server is there
}

// setting returns a setting with which an instance was started.
func (p *roomPage) setting(instance, name string) string {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.process(instance)))
	must(p.t, err)
	_, rest, _ := strings.Cut(string(text), "\x00"+name+"=")
	value, _, _ := strings.Cut(rest, "\x00")
	return value
}

// A trip is one round trip to a store, on the way of an instance.
type trip func(ctx context.Context) error

// tripLimit is how long a round trip may take, and slowTrip how long it takes at least through a slow line.
const tripLimit, slowTrip = 400 * time.Millisecond, 20 * time.Millisecond

// least returns how long the shortest of several round trips takes. It ends at the first that fails.
func (f trip) least(t *testing.T) (least time.Duration, err error) {
	t.Helper()
	least = time.Hour
	for i := 0; i < 8 && err == nil; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), tripLimit)
		began := time.Now()
		err = f(ctx)
		least = min(least, time.Since(began))
		cancel()
	}
	return least, err
}

// works waits until round trips are quick.
func (f trip) works(t *testing.T) {
	t.Helper()
	testbedtest.Eventually(t, "the store responds", func() bool {
		least, err := f.least(t)
		return err == nil && least < slowTrip
	})
}

// silent fails the test unless a round trip has no response: neither an answer nor a refusal.
func (f trip) silent(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tripLimit)
	defer cancel()
	if err := f(ctx); !os.IsTimeout(err) {
		t.Errorf("a round trip ends with %v; want no response", err)
	}
}

// redisTrip sends PING on a connection of its own.
func redisTrip(t *testing.T, address string) trip {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return err
		}
		defer conn.Close()
		end, _ := ctx.Deadline()
		_ = conn.SetDeadline(end) // it fails on a connection that is broken, as the next lines do
		fmt.Fprint(conn, "*1\r\n$4\r\nPING\r\n")
		_, err = conn.Read(make([]byte, 1))
		return err
	}
}

// Each button of the page does what it says to processes, stores and orders, as these show themselves. Buttons that lose data
// ask first.
func TestControlRoomButtons(t *testing.T) {
	t.Parallel()
	p := openRoom(t, product(t), nil, "net::ERR_", "Service Unavailable", "Bad Gateway", "400 (Bad Request)")
	p.sell("redis", "redis", 1, 1, 1)
	if got := p.text("[role=alert]"); got != "want one or two strategies" {
		t.Errorf("the page says %q of a sale that the room refuses", got)
	}
	accessible(p.tab, t, "a page that shows an error")
	p.sell("redis", "", 5, 5, 1)
	p.wait("the page refuses a sale that cannot be sold out", "document.querySelector('[role=alert]')?.innerText.startsWith('5 attempts for 5 units: want more')")
	ordersAreSettled(t, p)
	redisIsBroken(t, p)
	db := testbedtest.OpenSQL(t, p.setting("shop-1", "SHOP_DATABASE"))
	p.breakStore("database", db.PingContext)
	session, err := db.Conn(t.Context())
	must(t, err)
	defer session.Close()
	must(t, session.PingContext(t.Context()))
	p.press("database-disconnect", "")
	testbedtest.Eventually(t, "a connection to the database breaks", func() bool { return session.PingContext(t.Context()) != nil })
	trip(db.PingContext).works(t)
	processesAreBroken(t, p)
}

// breakStore makes a store slow, pauses it, and mends it after each.
func (p *roomPage) breakStore(store string, f trip) {
	p.t.Helper()
	is := func(want string) {
		p.t.Helper()
		testbedtest.Eventually(p.t, store+" is "+want, func() bool {
			s := p.state()
			return want == map[string]string{"redis": s.Redis.State, "database": s.Database.State}[store]
		})
	}
	f.works(p.t)
	p.press(store+"-slow", "")
	is("slow")
	if least, err := f.least(p.t); err == nil && least < slowTrip {
		p.t.Errorf("a round trip to the slow %s takes %v, want at least %v", store, least, slowTrip)
	}
	p.press(store+"-resume", "")
	f.works(p.t)
	p.press(store+"-pause", "")
	is("paused")
	f.silent(p.t)
	p.press(store+"-resume", "")
	f.works(p.t)
}

// redisIsBroken breaks Redis for all instances, then for one, and empties it.
func redisIsBroken(t *testing.T, p *roomPage) {
	t.Helper()
	first, second := p.setting("shop-1", "SHOP_REDIS"), p.setting("shop-2", "SHOP_REDIS")
	rdb, err := redisclient.New(first)
	must(t, err)
	defer rdb.Close()
	kept := func() (kept bool) {
		surely(t, func() error {
			n, err := rdb.Exists(t.Context(), "kept").Result()
			kept = n == 1
			return err
		})
		return kept
	}
	surely(t, func() error { return rdb.Set(t.Context(), "kept", "1", 0).Err() })
	p.press("redis-wipe", "")
	if asked := p.asked.Swap(nil); asked == nil || !strings.HasPrefix(*asked, "Wipe? ") {
		t.Errorf("before it empties Redis, the page asks %v", asked)
	}
	p.breakStore("redis", redisTrip(t, first)) // by then, the room has done what was pressed before
	if !kept() {
		t.Error("Redis was emptied although the question was dismissed")
	}
	p.yes.Store(true)
	p.press("redis-wipe", "")
	testbedtest.Eventually(t, "Redis is empty", func() bool { return !kept() })
	p.yes.Store(false)

	p.press("cut-off", "shop-1")
	testbedtest.Eventually(t, "shop-1 is cut off", func() bool { return p.state().Instances[0].CutOff })
	redisTrip(t, first).silent(t)
	redisTrip(t, second).works(t)
	p.press("reconnect", "shop-1")
	redisTrip(t, first).works(t)
}

// ordersAreSettled cancels an order and pays another one, and finds the events of that one.
func ordersAreSettled(t *testing.T, p *roomPage) {
	t.Helper()
	api, id := &instance{url: p.url}, ""
	api.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":5,"strategy":"redis"}`)
	p.yes.Store(true)
	for _, c := range [][2]string{{"Cancel", "CANCELLED"}, {"Pay", "CONFIRMED"}} {
		id = api.place(t)
		p.click(fmt.Sprintf("button[aria-label='%s %s']", c[0], id))
		testbedtest.Eventually(t, "the order is "+c[1], func() bool {
			var order struct{ Status string }
			decode(t, api.want(t, http.StatusOK, "GET", "/api/v1/orders/"+id, ""), &order)
			return order.Status == c[1]
		})
		p.wait("the order stays in view, with what happened to it", fmt.Sprintf("document.querySelector('.detail')?.innerText.includes(%q) && document.querySelector('.detail p').innerText.startsWith(%q) && document.querySelector('#story li')?.innerText.includes('Order %s was ')", id, c[1], id))
		if asked := p.asked.Swap(nil); (c[0] == "Cancel") != (asked != nil && strings.HasPrefix(*asked, "Cancel order "+id)) {
			t.Errorf("before %s, the page asks %v", c[0], asked)
		}
	}
	p.yes.Store(false)
	p.wait("the page shows the trace of the order", stepsAre("POST /api/v1/orders", "order.place", "queue", "lock.acquire", "lock.hold", "stock.reserve", "COMMIT", "event PENDING", "POST /api/v1/orders/:id/pay", "event CONFIRMED"))
	accessible(p.tab, t, "the trace of an order")
	audits, err := p.database.Audit(t.Context(), "a")
	must(t, err)
	if a := audits[0]; a.Sold != 1 || a.Open != 0 || !a.OK() {
		t.Errorf("%d units are sold and %d reserved, %v; want one sold", a.Sold, a.Open, a.Broken())
	}
	show(p.tab, t, "events")
	shown := "[...document.querySelectorAll('ol.events li')].map((e) => e.innerText)"
	others := fmt.Sprintf("%s.some((e) => !e.includes(%q))", shown, id)
	filter := func(text string) {
		p.wait("there is a filter", fmt.Sprintf("((f) => f && ((f.value = %q), f.dispatchEvent(new Event('input', {bubbles: true}))))(document.querySelector('input[type=search]'))", text))
	}
	p.wait("the page shows all events", others)
	filter(id)
	p.wait("the page shows the events of one order", fmt.Sprintf("((all) => all.length > 1 && all.every((e) => e.includes(%q)))(%s)", id, shown))
	filter("")
	p.wait("the page shows all events again", others)
}

// stepsAre is true of a page that shows these steps in the trace of the chosen order.
func stepsAre(steps ...string) string {
	return fmt.Sprintf("'%s'.split('|').every((step) => [...document.querySelectorAll('.detail .trace th[scope=row]')].some((e) => e.innerText.trim() === step))", strings.Join(steps, "|"))
}

// processesAreBroken pauses, stops, starts and kills instances.
func processesAreBroken(t *testing.T, p *roomPage) {
	t.Helper()
	one, two, three := p.process("shop-1"), p.process("shop-2"), p.process("shop-3")
	until := func(pid int, what string, is func(state string) bool) {
		t.Helper()
		testbedtest.Eventually(t, fmt.Sprintf("process %d %s", pid, what), func() bool { return is(processState(pid)) })
	}
	paused := func(state string) bool { return state == "T" }
	runs := func(state string) bool { return slices.Contains([]string{"R", "S", "D"}, state) }
	gone := func(state string) bool { return state == "" }

	p.press("late", "shop-2")
	until(two, "is paused", paused)
	p.press("kill", "shop-1")
	if asked := p.asked.Swap(nil); asked == nil || !strings.HasPrefix(*asked, "Kill shop-1? ") {
		t.Errorf("before it kills shop-1, the page asks %v", asked)
	}
	p.press("pause", "shop-1") // a process that was killed cannot be paused
	until(one, "is paused", paused)
	p.press("resume", "shop-1")
	until(one, "resumes", runs)

	end := newPage(t, "").once(t, p.address("shop-3"))
	p.press("stop", "shop-3")
	if err := end(); err != io.EOF { //nolint:errorlint // Nothing but a proper end will do.
		t.Errorf("the stream of an instance that stops ends with %v", err)
	}
	until(three, "has ended", gone)
	p.wait("shop-3 was stopped, and can only be started", "document.querySelector('[data-name=shop-3][data-state=stopped]') && [...document.querySelectorAll('[data-instance=shop-3]')].map((b) => b.dataset.action).join() === 'start'")
	p.press("start", "shop-3")
	testbedtest.Eventually(t, "another process serves as shop-3", func() bool {
		again := p.process("shop-3")
		return again != 0 && again != three && ask(t.Context(), http.DefaultClient, "GET", p.address("shop-3")+"/livez", "").header.Get("X-Instance-Id") == "shop-3"
	})
	until(two, "resumes by itself", runs)

	end = newPage(t, "").once(t, p.address("shop-1"))
	p.yes.Store(true)
	p.press("kill", "shop-1")
	if err := end(); err == io.EOF { //nolint:errorlint // A process that is killed does not end its streams.
		t.Error("the stream of an instance that is killed ends in good order")
	}
	until(one, "has ended", gone)
	p.wait("shop-1 was killed", "document.querySelector('[data-name=shop-1][data-state=killed]')")
}
