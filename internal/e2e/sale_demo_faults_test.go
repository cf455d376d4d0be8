package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/demo"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// watcher calls seen once, when a line that begins with what has been written.
type watcher struct {
	testbedtest.Buffer
	begin string
	once  sync.Once
	seen  func()
}

func (w *watcher) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), "\n"+w.begin) {
		w.once.Do(w.seen)
	}
	return n, err
}

// If a lock service dies during a sale, that sale has failed. The other sales are held, and there is a verdict.
func TestDemoWithALockServiceThatDies(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
	out := &watcher{begin: "naive ", seen: func() {
		if err := server.Kill(); err != nil {
			t.Error(err)
		}
	}}
	code, stderr := commandInto(t, out, "demo", "--strategies", "naive,etcd,conditional", "--etcd", server.Addr(), "--stock", "25", "--attempts", "400")
	text := out.String()
	if code != 1 || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		`(?m)^naive +oversold .* oversold$`, `(?m)^etcd +exact .* (BROKEN|UNDERSOLD)$`, `given up, as\s+no\s+request\s+got`,
		`(?m)^conditional +exact .* exact$`, `(?m)^--order-ttl 3s +exact .* exact$`, `(?m)^FAILED: a strategy that must be exact was not\.$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// A safe strategy that has become read, modify, write is found out.
func TestDemoFindsABrokenStrategy(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	strategies := stock.NewStrategies(stock.Lockers{}).With(stock.Strategy{
		Name:   "conditional",
		Update: stock.WriteBack,
		Lock: func(ctx context.Context, _ string) (stock.Held, error) {
			return stock.Held{Context: ctx, Release: func() {}}, nil
		},
	})
	handler, err := httpapi.New(httpapi.Config{
		Orders: order.NewService(store, strategies, order.Config{}), Stock: stock.NewService(store, strategies, nil), Strategies: strategies, Instance: "broken",
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	code, r := play(t, "--url", server.URL, "--database", database, "--strategies", "naive,conditional,for-update", "--stock", "40")
	for try := 1; try < 3 && r.Variants[1].Verdict == demo.Exact; try++ { // a race need not show at the first try
		code, r = play(t, "--url", server.URL, "--database", database, "--strategies", "naive,conditional,for-update", "--stock", "40")
	}
	if code != 1 || r.Verdict != demo.Failed || r.Variants[1].Verdict != demo.Oversold || r.Variants[2].Verdict != demo.Exact {
		t.Errorf("exit code %d: %+v", code, r)
	}
	if r.Expiry != nil {
		t.Errorf("orders expired at instances that are not the demo's own: %+v", r.Expiry)
	}
}

// Instances that leave the timers to others are found out. A demo has no such
// flag, so a script adds it to their arguments.
func TestDemoFindsOrdersThatDoNotExpire(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec '"+program+"' \"$@\" --canary\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := demo.Run(t.Context(), demo.Config{Executable: script, Strategies: []string{"naive", "conditional"}, Stock: 20, MaxWait: 5 * time.Second, JSON: true, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Expiry; r.Verdict != demo.Failed || r.Variants[1].Verdict != demo.Exact || e.Orders != 100 || e.Fired != 0 || e.Lost != 100 || e.Early != 0 {
		t.Errorf("%s: %+v %+v", r.Verdict, r.Variants, r.Expiry)
	}
}

// The instances of a demo end with it, even when it is killed.
func TestInstancesEndWithTheDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // it is the disk that takes long
	defer cancel()
	parent := exec.CommandContext(ctx, program, "demo", "--keep", "--strategies", "naive", "--stock", "5")
	parent.Env = environment(map[string]string{"TMPDIR": t.TempDir()}) // a demo that is killed cannot clean up
	var problems testbedtest.Buffer
	parent.Stderr = &problems
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var urls []string
	var received strings.Builder
	lines := bufio.NewScanner(io.TeeReader(out, &received))
	for len(urls) < 3 && lines.Scan() {
		if u := strings.TrimSpace(lines.Text()); strings.HasPrefix(u, "http://") {
			urls = append(urls, u)
		}
	}
	if len(urls) != 3 {
		t.Fatalf("the demo printed %d URLs: %s%s", len(urls), &received, &problems)
	}
	alive := func(u string) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u+"/livez", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return true
	}
	for _, u := range urls {
		if !alive(u) {
			t.Fatalf("%s does not answer before the demo is killed", u)
		}
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	for _, u := range urls {
		for alive(u) { // each question takes a round trip
		}
		if ctx.Err() != nil { // then silence is the deadline's, not the instance's
			t.Fatalf("%s outlives its demo", u)
		}
	}
}

// Ctrl-C ends all processes of a room: instances, even one that is paused, the one that places unpaid orders, and those of a lab.
func TestControlRoomLeavesNoProcess(t *testing.T) {
	t.Parallel()
	r := startRoom(t, product(t), "--instances", "2")
	address, token, _ := strings.Cut(r.url, "/#token=")
	for _, path := range []string{"/lab/unpaid", "/lab/actions/pause?instance=shop-2", "/lab/labs/lost-update"} {
		if a := ask(t.Context(), http.DefaultClient, "POST", address+path, "", "Shop-Room-Token", token); a.status != http.StatusNoContent && a.status != http.StatusAccepted { // it goes on
			t.Fatal(a)
		}
	}
	testbedtest.Eventually(t, "the lab has started a process", func() bool { return len(descendants(t, r.pid)) > 3 })
	r.end()
}

// processState returns the state of a process as the system has it, such as T for one that is paused; nothing if it has gone.
func processState(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if _, rest, ok := strings.Cut(string(text), ") "); ok && err == nil {
		return rest[:1]
	}
	return ""
}

// descendants returns the processes that a process has started, and those that these have started.
func descendants(t *testing.T, pid int) (all []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := make(map[int][]int)
	for _, name := range files {
		text, _ := os.ReadFile(name) // nothing, if it has ended since
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		var child, parent int
		if n, _ := fmt.Sscan(rest, &state, &parent); n == 2 {
			fmt.Sscanf(name, "/proc/%d/stat", &child)
			children[parent] = append(children[parent], child)
		}
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return all
}
