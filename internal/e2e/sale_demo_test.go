package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/demo"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// play runs shop demo, and returns its exit code and JSON report.
func play(t *testing.T, args ...string) (int, demo.Report) {
	t.Helper()
	code, out, stderr := command(t, append([]string{"demo", "--json"}, args...)...)
	return code, report(t, code, out, stderr)
}

// report reads what a demo has printed.
func report(t *testing.T, code int, out, stderr string) demo.Report {
	t.Helper()
	var r demo.Report
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("exit code %d: %v\n%s%s", code, err, out, stderr)
	}
	if rest := strings.TrimSpace(out[d.InputOffset():]); rest != "" {
		t.Errorf("more than JSON: %q", rest)
	}
	return r
}

// proved fails the test unless every arm came out as expected, and every unpaid
// order expired once, at its time, and is not to be paid any more.
func proved(t *testing.T, code int, r demo.Report, arms int) {
	t.Helper()
	if code != 0 || r.Verdict != demo.Proved || len(r.Arms) != arms {
		t.Errorf("exit code %d: %s after %d arms", code, r.Verdict, len(r.Arms))
	}
	for _, a := range r.Arms {
		if a.Verdict != a.Expected || a.InstancesSeen != 3 || a.Accepted+a.Rejected+a.Errors != a.Attempts {
			t.Errorf("%+v", a)
		}
	}
	if e := r.Expiry; e == nil || e.Orders != 100 || e.Fired != 100 || e.Early != 0 || e.Lost != 0 || e.Double != 0 || e.P50 <= 0 || e.P99 < e.P50 {
		t.Errorf("expiry: %+v", e)
	} else {
		t.Logf("lateness: p50 %.1f ms, p99 %.1f ms", e.P50, e.P99)
	}
}

func TestDemoOnEmbeddedStores(t *testing.T) {
	t.Parallel()
	code, r := play(t, "--stock", strconv.Itoa(testbedtest.Size(40, 100))) // 100 is the default
	proved(t, code, r, 12)
	if want := (demo.Stores{Redis: "embedded", Database: "sqlite"}); r.Stores != want || r.Instances != 3 {
		t.Errorf("%+v at %d instances", r.Stores, r.Instances)
	}
	if want := []string{"redlock", "zookeeper", "etcd", "redlock-cohort", "zookeeper-cohort", "etcd-cohort"}; !slices.Equal(r.Missing.Strategies, want) || r.Missing.Stores != nil {
		t.Errorf("missing: %+v", r.Missing)
	}
}

// stockSize is how many units a demo sells that has been shown at full size.
func stockSize() string { return strconv.Itoa(testbedtest.Size(25, 400)) }

// ownRedis returns a Redis that wakes nobody for the timers of another test.
func ownRedis(t *testing.T) string {
	t.Helper()
	return testbedtest.StartRedis(t, testbed.RedisConfig{}).URL()
}

func TestDemoOnRealStores(t *testing.T) {
	t.Parallel()
	args, arms := []string{"--redis", ownRedis(t), "--database", testbedtest.Database(t), "--stock", stockSize()}, 12
	if testbedtest.Size(0, 1) == 0 { // the demo of every lock runs the others
		args, arms = append(args, "--strategies", "naive,redis,lua"), 3
	}
	code, r := play(t, args...)
	proved(t, code, r, arms)
}

// Every lock of the house sells the same stock, each on its real server. The instances are
// this binary, which has the race detector.
func TestDemoOfEveryLock(t *testing.T) {
	t.Parallel()
	code, out, stderr := call(t, noEnv, "demo", "--json", "--all", "--stock", stockSize())
	r := report(t, code, out, stderr)
	if want := (demo.Stores{Redis: "redis", Database: "mysql", Redlock: 5, ZooKeeper: 1, Etcd: 1}); r.Stores != want {
		if os.Getenv("SHOP_TEST_REQUIRE") != "1" {
			t.Skipf("something is not installed: %+v; SHOP_TEST_REQUIRE=1 makes this a failure", r.Stores)
		}
		t.Errorf("%+v", r.Stores)
	}
	proved(t, code, r, 18)
}

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

// A lock service that dies under a sale costs that sale: it is given up and has failed, the others
// are held, and there is a verdict.
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
		`(?m)^naive +oversold .* oversold$`, `(?m)^etcd +exact .* (BROKEN|UNDERSOLD)$`, `given up, as nobody got an answer`,
		`(?m)^conditional +exact .* exact$`, `(?m)^--order-ttl 3s +exact .* exact$`, `(?m)^FAILED: a strategy that must be exact was not\.$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// Newer versions of MariaDB refuse an update of a row that changed since the
// snapshot was taken.
func TestDemoWithSnapshotIsolation(t *testing.T) {
	t.Parallel()
	db := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"innodb_snapshot_isolation": "ON"}})
	args, arms := []string{"--redis", ownRedis(t), "--database", db.URL(), "--stock", stockSize()}, 12
	if testbedtest.Size(0, 1) == 0 { // each way to write a row
		args, arms = append(args, "--strategies", "naive,conditional,segmented,optimistic,for-update,redis,redis-cohort"), 7
	}
	code, r := play(t, args...)
	proved(t, code, r, arms)
}

func TestOneInstanceNeedsNoMoreThanAMutex(t *testing.T) {
	t.Parallel()
	code, r := play(t, "--instances", "1", "--strategies", "local", "--stock", "20")
	if code != 3 || r.Verdict != demo.Inconclusive || r.Arms[0].Expected != demo.Exact || r.Arms[0].Verdict != demo.Exact {
		t.Errorf("exit code %d: %+v", code, r)
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
		Name:  "conditional",
		Write: stock.WriteBack,
		Guard: func(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
			return fn(ctx, dlock.Fence{})
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
	for try := 1; try < 3 && r.Arms[1].Verdict == demo.Exact; try++ { // a race need not show at the first try
		code, r = play(t, "--url", server.URL, "--database", database, "--strategies", "naive,conditional,for-update", "--stock", "40")
	}
	if code != 1 || r.Verdict != demo.Failed || r.Arms[1].Verdict != demo.Oversold || r.Arms[2].Verdict != demo.Exact {
		t.Errorf("exit code %d: %+v", code, r)
	}
	if r.Expiry != nil {
		t.Errorf("orders expired at instances that are not the demo's own: %+v", r.Expiry)
	}
}

// Instances that leave the timers to others are found out. A demo has no such
// flag, so a script adds it to what they are told.
func TestDemoFindsOrdersThatDoNotExpire(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec '"+executable+"' \"$@\" --canary\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := demo.Run(t.Context(), demo.Config{Executable: script, Strategies: []string{"naive", "conditional"}, Stock: 20, Patience: 5 * time.Second, JSON: true, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Expiry; r.Verdict != demo.Failed || r.Arms[1].Verdict != demo.Exact || e.Orders != 100 || e.Fired != 0 || e.Lost != 100 || e.Early != 0 {
		t.Errorf("%s: %+v %+v", r.Verdict, r.Arms, r.Expiry)
	}
}

// The instances of a demo end with it, even when it is killed.
func TestInstancesEndWithTheDemo(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // it is the disk that takes long
	defer cancel()
	parent := exec.CommandContext(ctx, executable, "demo", "--keep", "--strategies", "naive", "--stock", "5")
	parent.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // a demo that is killed cannot clean up
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
	var heard strings.Builder
	lines := bufio.NewScanner(io.TeeReader(out, &heard))
	for len(urls) < 3 && lines.Scan() {
		if u := strings.TrimSpace(lines.Text()); strings.HasPrefix(u, "http://") {
			urls = append(urls, u)
		}
	}
	if len(urls) != 3 {
		t.Fatalf("the demo printed %d URLs: %s%s", len(urls), &heard, &problems)
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

func TestDemoTellsAPerson(t *testing.T) {
	t.Parallel()
	code, out, stderr := command(t, "demo", "--strategies", "naive,conditional", "--stock", "20")
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
	for _, want := range []string{"strategy", "  oversold\n", "units were sold that never existed", "  exact\n", "--order-ttl 3s", "(kill -9)", "lateness", "PROVED", "Next:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if len(strings.TrimRight(line, "\n")) > 120 {
			t.Errorf("a line of %d columns: %s", len(line)-1, line)
		}
	}
	if bytes.ContainsRune([]byte(out), '\r') {
		t.Error("a progress bar in a pipe")
	}
}
