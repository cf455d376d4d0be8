package e2e_test

import (
	"database/sql"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Nobody but this machine may ask, and a port that is taken is named.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:8081", ":8081", "[::]:8081", "10.0.0.1:8081", "example.com:8081", "8081", "127.0.0.1:http", "127.0.0.1"} {
		code, out, stderr := call(t, noEnv, "serve", "--admin-listen", address)
		if code != 2 || out != "" || !strings.Contains(stderr, "--admin-listen") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", address, code, stderr)
		}
	}
	r := start(t, "--database", sqliteURL(t), "--admin-listen", "127.0.0.1:0")
	taken := strings.TrimPrefix(r.admin(t), "http://")
	code, _, stderr := call(t, noEnv, "serve", "--database", sqliteURL(t), "--listen", "127.0.0.1:0", "--admin-listen", taken)
	if code != 1 || !strings.Contains(stderr, taken) || !strings.Contains(stderr, "--admin-listen") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	r.want(t, http.StatusNotFound, "GET", "/api/v1/timers", "")
	shows(t, []string{"healthcheck", "--url", r.url})
	r.stop()
	r.stopped(t)
	if code, _, stderr := call(t, noEnv, "timers", "list", "--admin-url", "http://"+taken); code != 1 || !strings.Contains(stderr, "nothing listens") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Other machines may read the metrics, and nothing else.
func TestMetricsListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"8082", "127.0.0.1:http", "127.0.0.1"} {
		code, out, stderr := call(t, noEnv, "serve", "--metrics-listen", address)
		if code != 2 || out != "" || !strings.Contains(stderr, "--metrics-listen") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", address, code, stderr)
		}
	}
	r := start(t, "--database", sqliteURL(t), "--metrics-listen", "0.0.0.0:0")
	_, port, err := net.SplitHostPort(r.serving(t).Metrics)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/metrics": 200, "/api/v1/timers": 404, "/debug/pprof/": 404, "/livez": 404} {
		metrics := instance{url: "http://127.0.0.1:" + port}
		if status, body := metrics.send(t, http.MethodGet, path, ""); status != want || want == 200 && !strings.Contains(body, "shop_orders_total") {
			t.Errorf("%s: %d %.100s", path, status, body)
		}
	}
	code, _, stderr := call(t, noEnv, "serve", "--database", sqliteURL(t), "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:"+port)
	if code != 1 || !strings.Contains(stderr, "--metrics-listen") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestRefusedValueIsNamed by the commands that ask one: the value, and what is wanted.
func TestRefusedValueIsNamed(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	for args, want := range map[string][]string{
		"config set permits many":           {`permits "many"`, "a whole number"},
		"config set order-ttl 5":            {`order-ttl "5"`, "a duration such as 90s"},
		"config set order-ttl 1ms":          {"order-ttl 1ms", "1s to 720h"},
		"config set reconciler-pace x":      {`reconciler-pace "x"`, "a duration such as 90s"},
		"config set log-level loud":         {`log-level "loud"`, "debug, info, warn or error"},
		"config set permits 8 --version=-1": {"/version"},
		"config set nothing 5":              {`"nothing"`, "log-level, order-ttl"},
		"config get nothing":                {`"nothing"`, "log-level, order-ttl"},
	} {
		code, out, stderr := call(t, noEnv, append(strings.Fields(args), "--url="+r.url)...)
		if code == 0 || out != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, stderr)
		}
		for _, words := range want {
			if !strings.Contains(stderr, words) {
				t.Errorf("%s: want %q: %s", args, words, stderr)
			}
		}
	}
	broken := map[string]string{"SHOP_KEY": "shop_secret\nX: y"}
	if code, _, stderr := call(t, broken, "cluster", "members", "--url", r.url); code != 1 || !strings.Contains(stderr, "SHOP_KEY") || strings.Contains(stderr, "secret") {
		t.Errorf("a key with a line break: exit code %d: %s", code, stderr)
	}
}

// A dead timer is found, redriven, and fires: by command, and at another instance than the one that the command asks.
func TestTimersByCommand(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	r := start(t, "--database", database, "--order-ttl", "1s", "--admin-listen", "127.0.0.1:0")
	canary := start(t, "--database", database, "--canary", "--admin-listen", "localhost:0")
	asked := canary.admin(t)
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":9,"strategy":"conditional"}`)
	db, err := sql.Open("sqlite", strings.TrimPrefix(database, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	shows(t, []string{"timers", "pause", "order.expire", "--admin-url", r.admin(t)}, "is paused")
	first, second := r.place(t), r.place(t)
	bury := "UPDATE timeouts SET state = 'DEAD', attempt = 10, last_error = ? WHERE id IN (?, ?)"
	if _, err := db.ExecContext(t.Context(), bury, "the stock\trow\n\x1b[31mis gone", first, second); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) []string {
		return append([]string{"timers", args[0], "--admin-url", asked}, args[1:]...)
	}
	list := shows(t, command("list", "--kind", "order.expire", "--state", "dead"),
		"KIND", "LAST ERROR", "order.expire  "+first, second, "DEAD", "10", "base", "the stock row  [31mis gone\n")
	if strings.Count(list, "\n") != 3 {
		t.Errorf("a heading and two timers, got\n%s", list)
	}
	shows(t, command("get", "order.expire", first), first, "DEAD")
	var one struct{ ID, State, Due string }
	decode(t, shows(t, command("get", "order.expire", "--json", first)), &one)
	if due, err := time.Parse(time.RFC3339, one.Due); err != nil || one.ID != first || one.State != "DEAD" || due.IsZero() {
		t.Errorf("%v, %v", one, err)
	}

	metrics(t, canary, `shop_timers_dead{kind="order.expire",partition="base",role="canary"} 2`, `shop_timers_paused{kind="order.expire",role="canary"} 1`)
	shows(t, command("redrive", "order.expire", first), "1 dead timers")
	shows(t, command("redrive", "order.expire"), "1 dead timers")
	shows(t, append(command("redrive", "order.expire"), "--json"), `"timers": 0`)
	if out := shows(t, command("list"), first, second); strings.Contains(out, "DEAD") {
		t.Errorf("redriven timers are dead:\n%s", out)
	}
	shows(t, command("fire", "order.expire", second), second+" is due now")
	shows(t, command("resume", "order.expire"), "is not paused")
	for end := time.Now().Add(2 * time.Minute); ; { // both fire, once they are due
		_, answer := r.send(t, "GET", "/api/v1/skus/a", "")
		if out := shows(t, command("list", "--json")); strings.Contains(answer, `"reserved":0,`) && strings.Contains(out, `"timers": []`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("still reserved: %s", answer)
		}
		<-time.After(50 * time.Millisecond)
	}
	metrics(t, r, `shop_timers_firing_delay_seconds_count{kind="order.expire",role="base"} `,
		`shop_timers_outcomes_total{kind="order.expire",outcome="committed",role="base"} `)
	refuses(t, "no such timer", command("get", "order.expire", first)...)
	refuses(t, "no such timer", command("fire", "order.expire", first)...)
	refuses(t, "No timer has this kind", command("pause", "order.expir")...)
	refuses(t, "malformed kind", command("pause", "a b")...)
}

// metrics fails the test unless the instance shows lines that begin with all of want.
func metrics(t *testing.T, r *instance, want ...string) {
	t.Helper()
	page := ""
	missing := func(w string) bool { return !strings.Contains(page, "\n"+w) }
	for end := time.Now().Add(time.Minute); ; <-time.After(200 * time.Millisecond) { // what the stores do not answer in time is left out
		page = (&instance{url: r.admin(t)}).want(t, http.StatusOK, "GET", "/metrics", "")
		if !slices.ContainsFunc(want, missing) || time.Now().After(end) {
			break
		}
	}
	for _, w := range want {
		if missing(w) {
			t.Errorf("/metrics has no %s", w)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "shop_timers_") && !strings.Contains(line, "_bucket") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// An instance that asks for keys asks for an admin's on its admin listener too, and shop timers
// takes it from the environment.
func TestTimersWithAKey(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	_, admin := newKey(t, database, "--admin")
	_, customer := newKey(t, database, "--customer", "ann")
	r := start(t, "--database", database, "--auth", "keys")
	list := []string{"timers", "list", "--admin-url", r.admin(t)}
	for key, want := range map[string]int{"": 1, customer: 1, admin: 0} {
		code, _, stderr := call(t, map[string]string{"SHOP_KEY": key}, list...)
		if code != want || want == 1 && !strings.Contains(stderr, "shop keys create --admin") || key != "" && strings.Contains(stderr, key) {
			t.Errorf("exit code %d, want %d: %s", code, want, stderr)
		}
	}
}
