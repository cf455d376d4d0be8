package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// In a Redis Cluster each node has its role, and each master is examined. A replica that does not respond is a warning, and a master that evicts
// fails. docs/how-to/troubleshoot.md has lines of both.
func TestDoctorOnRedisCluster(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile("(?s)```\n(STORE.*?)```").FindAllStringSubmatch(string(page), -1)
	database := sqliteURL(t)
	if code, _, stderr := call(t, noEnv, "migrate", "--create", "--database", database); code != 0 {
		t.Fatal(stderr)
	}
	cluster := testbedtest.StartCluster(t)
	examine := func(code int, documented string, want ...string) {
		testbedtest.Steady(t, func(t testing.TB) {
			table, checks := doctor(t, code, "--database", database, "--redis", redistest.ClusterURL(cluster))
			if diff := cmp.Diff(want, failures(checks)); diff != "" {
				t.Errorf("%s%s", diff, strings.Join(table, "\n"))
			}
			lines := unmeasured(strings.Join(table, "\n"))
			for _, line := range unmeasured(documented) {
				if !slices.Contains(lines, line) {
					t.Errorf("the page has %q, and not the command:\n%s", line, strings.Join(table, "\n"))
				}
			}
			masters, policies := strings.Count(strings.Join(lines, "\n"), "host ok cluster master"), strings.Count(strings.Join(lines, "\n"), " maxmemory-policy ")
			if masters != 3 || policies != 3 {
				t.Errorf("%d masters and %d policies, want 3 of each", masters, policies)
			}
		})
	}
	examine(0, tables[1][1])
	addresses := cluster.Addrs()
	configure(t, "redis://"+addresses[0], "CONFIG SET maxmemory-policy allkeys-lru")
	if err := cluster.Nodes()[5].Kill(); err != nil {
		t.Fatal(err)
	}
	examine(1, tables[2][1], "redis host warn", "redis maxmemory-policy fail")
}

// unmeasured returns the lines of a table without what differs from one run to the next.
func unmeasured(table string) (lines []string) {
	for line := range strings.Lines(strings.TrimSpace(table)) {
		lines = append(lines, regexp.MustCompile(`\d[\d.:]*`).ReplaceAllString(strings.Join(strings.Fields(line), " "), "N"))
	}
	return lines
}
