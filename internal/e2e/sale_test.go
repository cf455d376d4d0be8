package e2e_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/demo"
)

// A thousand customers want ten units, up to a hundred at a time, from three instances. Ten get one,
// all others receive that it is sold out, and nobody receives anything else. Other tests wait
// meanwhile: whoever has no time left would receive that, too.
func TestAThousandBuyersOfTen(t *testing.T) {
	s := newStage(t)
	fleet := s.three(t, "--permits", "1000")
	client := customers(t)
	store := books(t, s.database)
	usual := testbedtest.Size(300, 1000) // a thousand by each strategy at full size
	for strategy, buyers := range map[string]int{"conditional": 1000, "redis": usual, "redis-cohort": usual, "lua": usual} {
		hands := 100
		if strategy == "redis" { // one order at a time: so many wait for as long as the others take together
			hands = testbedtest.Size(30, 100)
		}
		fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+strategy, `{"on_hand":10,"strategy":"`+strategy+`"}`)
		began := time.Now()
		var queue atomic.Int64
		answers := make([]answer, buyers)
		together(hands, func(int) (last answer) {
			for i := int(queue.Add(1)) - 1; i < buyers; i = int(queue.Add(1)) - 1 {
				answers[i] = served(t.Context(), client, fleet[i%3].url, strategy)
			}
			return last
		})
		got := tally(answers)
		if want := (map[int]int{http.StatusCreated: 10, http.StatusConflict: buyers - 10}); !maps.Equal(got, want) {
			t.Errorf("%s: answers by status: %s", strategy, cmp.Diff(want, got))
			for _, a := range answers {
				if a.status != http.StatusCreated && a.status != http.StatusConflict {
					t.Log(a)
					break
				}
			}
		}
		t.Logf("%s: %d buyers are answered after %v", strategy, buyers, time.Since(began).Round(time.Millisecond))
		audits, err := store.Audit(t.Context(), strategy)
		if err != nil {
			t.Fatal(err)
		}
		if a := audits[0]; !a.OK() || a.Reserved != 10 {
			t.Errorf("%s: the books: %v, %d reserved", strategy, a.Broken(), a.Reserved)
		}
	}
}

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

// proved fails the test unless every variant has its expected verdict. Every unpaid order must have expired once, at
// its time, and refuse a payment.
func proved(t *testing.T, code int, r demo.Report, variants int) {
	t.Helper()
	if code != 0 || r.Verdict != demo.Proved || len(r.Variants) != variants {
		t.Errorf("exit code %d: %s after %d variants", code, r.Verdict, len(r.Variants))
	}
	for _, a := range r.Variants {
		if a.Verdict != a.Expected || a.InstancesHit != 3 || a.Accepted+a.Rejected+a.Errors != a.Attempts {
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
	testbedtest.Measured(t)
	code, r := play(t, "--stock", strconv.Itoa(testbedtest.Size(40, 100))) // 100 is the default
	proved(t, code, r, 11)
	if want := (demo.Stores{Redis: "embedded", Database: "sqlite"}); r.Stores != want || r.Instances != 3 {
		t.Errorf("%+v at %d instances", r.Stores, r.Instances)
	}
	if want := []string{"redlock", "zookeeper", "etcd", "redlock-cohort", "zookeeper-cohort", "etcd-cohort"}; !slices.Equal(r.Missing.Strategies, want) || r.Missing.Stores != nil {
		t.Errorf("missing: %+v", r.Missing)
	}
}

// stockSize is how many units a demo sells that has been shown at full size.
func stockSize() string { return strconv.Itoa(testbedtest.Size(25, 400)) }

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
	proved(t, code, r, 17)
}

func TestMutexSufficesForOneInstance(t *testing.T) {
	t.Parallel()
	code, r := play(t, "--instances", "1", "--strategies", "local", "--stock", "20")
	if code != 3 || r.Verdict != demo.Inconclusive || r.Variants[0].Expected != demo.Exact || r.Variants[0].Verdict != demo.Exact {
		t.Errorf("exit code %d: %+v", code, r)
	}
}

func TestDemoPrintsItsVerdict(t *testing.T) {
	t.Parallel()
	code, out, stderr := command(t, "demo", "--strategies", "naive,conditional", "--stock", "20")
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
	for _, want := range []string{"strategy", "  oversold\n", "units were sold that never existed", "  exact\n", "--order-ttl 3s", "(kill -9)", "delay from", "PROVED", "Next:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, line := range transcriptFrame(fileText(t, readme)) {
		if !strings.Contains(out, line) {
			t.Errorf("the demo prints no %q, which README.md shows", line)
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

// TestDemoOnAnotherDatabaseSellsNothing: --database is not that of the service at --url, or a strategy lacks its
// store. The demo then ends before it creates a file, or a SKU at the service.
func TestDemoOnAnotherDatabaseSellsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	service := start(t, "--database", sqliteURL(t))
	for want, args := range map[string][]string{
		"check --database":               {"--url", service.url, "--database", "sqlite:mistyped.db"},
		"has no schema":                  {"--url", service.url, "--database", testbedtest.Database(t)},
		`"etcd" needs --etcd`:            {"--database", "sqlite:mistyped.db", "--strategies", "redis,etcd"},
		`"zookeeper-cohort" needs --zoo`: {"--database", "sqlite:mistyped.db", "--strategies", "zookeeper-cohort"},
	} {
		code, out, stderr := call(t, noEnv, append([]string{"demo"}, args...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, want %q: %s%s", args, code, want, out, stderr)
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 0 {
		t.Errorf("refused demos have left %v, %v", files, err)
	}
	if page := service.want(t, http.StatusOK, http.MethodGet, "/api/v1/skus", ""); page != `{"skus":[]}`+"\n" {
		t.Errorf("the service sells %s", page)
	}
}
