package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// patroniTTL is for how long a leader is silent before it has a successor.
const patroniTTL = 20 * time.Second

// startPatroni starts three servers whose agents elect the writer. Two instances have all of them in their lists, and one has the proxy of
// docs/how-to/switch-the-database.md.
func startPatroni(t *testing.T) *servers {
	t.Helper()
	cluster := testbedtest.StartPatroni(t, patroniTTL)
	all := serversOf("postgres://shop@", cluster.Nodes())
	all.databases[2] = "postgres://shop@" + proxyToLeader(t, cluster.Nodes()) + "/" + testbed.DefaultDatabase
	all.waits = mostWait
	ctx := t.Context()
	leader := func() *testbed.PatroniMember {
		m, err := cluster.Leader(ctx)
		must(t, err)
		return m
	}
	succeeded := func() {
		leader()
		all.promoted = time.Now()
	}
	all.faults = []engineFault{
		{"leader switched over", func() {
			must(t, cluster.Switch(ctx))
			succeeded()
			must(t, cluster.Whole(ctx))
		}, "", nil},
		{"leader and its agent killed, start again", func() {
			m := leader()
			must(t, m.Kill())
			succeeded()
			must(t, m.Restart(ctx))
			must(t, cluster.Whole(ctx))
		}, "", nil},
		{"leader and its agent paused, then killed, start again", func() {
			m := leader()
			must(t, m.Pause())
			succeeded()
			must(t, m.Kill()) // Patroni 3.0.2 has no other way: a leader that resumes takes the lock from its successor
			must(t, m.Restart(ctx))
			must(t, cluster.Whole(ctx))
		}, "", nil},
	}
	return all
}

// proxyToLeader runs the HAProxy of the page, but for addresses, and returns its own.
func proxyToLeader(t *testing.T, members []*testbed.PatroniMember) (address string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/switch-the-database.md")
	must(t, err)
	config := regexp.MustCompile("(?s)```haproxy\n(.*?)```").FindSubmatch(page)
	if config == nil {
		t.Fatal("the page has no configuration of HAProxy")
	}
	text := string(config[1])
	for i, m := range members {
		_, check, _ := strings.Cut(m.Check(), ":")
		text = swap(t, text, fmt.Sprintf(`(?m)^  server db%d db%[1]d:5432 check port 8008$`, i+1), fmt.Sprintf("  server db%d %s check port %s", i+1, m.Addr(), check))
	}
	address, output := runHAProxy(t, text, ":5000")
	testbedtest.Eventually(t, "the proxy knows the leader", func() bool {
		down := make(map[string]bool)
		for _, server := range regexp.MustCompile(`(\S+) is DOWN`).FindAllString(output.String(), -1) {
			down[server] = true
		}
		return len(down) >= len(members)-1
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(output)
		}
	})
	return address
}
