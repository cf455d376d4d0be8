package e2e_test

import (
	"fmt"
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
	config := block(t, "haproxy", "bind :5000\n")
	for i, m := range cluster.Nodes() {
		_, check, _ := strings.Cut(m.Check(), ":")
		config = swap(t, config, fmt.Sprintf(`db%d:5432 check port 8008`, i+1), fmt.Sprintf("%s check port %s", m.Addr(), check))
	}
	all.databases[2] = "postgres://shop@" + proxyToWriter(t, config, ":5000") + "/" + testbed.DefaultDatabase
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
