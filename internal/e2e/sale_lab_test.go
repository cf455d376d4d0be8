package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/lab"
	"example.com/shop/internal/testbed/testbedtest"
)

// The lab sells by real strategies on real servers, and its figures belong to orders that
// are in the books.
func TestLabThroughput(t *testing.T) {
	t.Parallel()
	testbedtest.Redis(t) // skips, or fails, where it is not installed
	testbedtest.Database(t)
	out := t.TempDir()
	var r lab.Report
	for again := true; again; { // in a round for all of which the machine stood still nothing is sold
		still := watchStillness(t)
		code, stdout, stderr := command(t, "lab", "throughput", "--json", "--strategies", "naive,redis", "--connections", "12",
			"--rounds", "2", "--duration", "1500ms", "--warmup", "500ms", "--out", out)
		r = lab.Report{}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
			t.Fatalf("exit code %d: %v\n%s%s", code, err, stdout, stderr)
		}
		nothing := func(r lab.Round) bool { return r.OrdersPerSecond == 0 }
		again = still.stood() > time.Second && slices.ContainsFunc(r.Arms, func(a lab.Arm) bool { return slices.ContainsFunc(a.Rounds, nothing) })
	}
	if len(r.Arms) != 2 || r.Arms[0].Strategy != "naive" || r.Arms[0].Oversold == 0 && r.Arms[0].LostUpdates == 0 || r.Arms[0].ToNaive != 1 {
		t.Errorf("%+v", r.Arms)
	}
	if v := r.Machine.Servers; !strings.Contains(v["mariadb"], ".") || !strings.Contains(v["redis"], ".") {
		t.Errorf("the versions of the servers are missing: %+v", r.Machine)
	}
	for _, a := range r.Arms {
		if !a.OK() || len(a.Rounds) != 2 || a.OrdersPerSecond <= 0 || a.P50 <= 0 || a.P999 < a.P99 || a.P99 < a.P50 {
			t.Errorf("%+v", a)
		}
		if a.SQL < 1 || a.Commits < 0.5 || a.CPU["shop"] <= 0 {
			t.Errorf("the cost of an order is missing: %+v", a)
		}
	}
	if fenced := r.Arms[1]; !fenced.AuditOK || fenced.Oversold != 0 || fenced.Undersold != 0 || fenced.LostUpdates != 0 || fenced.Redis < 1 {
		t.Errorf("%+v", fenced)
	}
	if l := r.Limits; l.Commits <= 0 || l.Rows <= l.Commits || l.Requests <= 0 {
		t.Errorf("%+v", l)
	}
	for _, name := range []string{"throughput.md", "throughput.json", "throughput.svg"} {
		if b, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(b), "naive") {
			t.Errorf("%s: %v: %s", name, err, b)
		}
	}
}

func TestLabRefuses(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"want throughput":      {},
		"no strategy":          {"throughput", "--strategies", "fast"},
		"--rounds 0":           {"throughput", "--rounds", "0"},
		"needs a store that":   {"throughput", "--strategies", "etcd", "--stores", "sqlite,redis"},
		"unexpected argument ": {"throughput", "more"},
	} {
		code, stdout, stderr := call(t, noEnv, append([]string{"lab"}, args...)...)
		if code == 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}
