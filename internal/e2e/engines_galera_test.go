package e2e_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// startGalera starts three nodes that all accept writes. Each instance has its own node first in its list.
func startGalera(t *testing.T) *servers {
	t.Helper()
	nodes := testbedtest.StartGalera(t).Nodes()
	testbedtest.Exec(t, nodes[0], testbed.SellerStatements...)
	all := serversOf("mysql://seller:secret@", nodes)
	all.faults = []engineFault{
		{"node killed for 5 s, back by state transfer", func() {
			must(t, nodes[2].Kill())
			<-time.After(5 * time.Second)
		}, "", func() {
			before := len(printed(t, nodes[2]))
			must(t, nodes[2].Restart(t.Context()))
			if joined := printed(t, nodes[2])[before:]; !strings.Contains(joined, "rsync SST completed on joiner") {
				t.Errorf("no full state transfer: %s", joined)
			}
		}},
		{"majority paused for 15 s", func() {
			must(t, nodes[1].Pause())
			must(t, nodes[2].Pause())
			<-time.After(15 * time.Second)
		}, "store-unavailable", func() {
			must(t, nodes[1].Resume())
			must(t, nodes[2].Resume())
		}},
		{"node paused for 15 s", func() {
			must(t, nodes[1].Pause())
			<-time.After(15 * time.Second)
			must(t, nodes[1].Resume())
		}, "", nil},
	}
	return all
}

// printed returns what a server has printed so far.
func printed(t *testing.T, server *testbed.MariaDB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(server.Folder(), "output.log"))
	must(t, err)
	return string(text)
}

// HAProxy asks nodes for their state. A node that leaves the state Synced still accepts writes, but loses the connections of an instance,
// which places orders at another node.
func TestNodeThatIsNotSyncedGetsNoOrders(t *testing.T) {
	t.Parallel()
	nodes := testbedtest.StartGalera(t).Nodes()
	testbedtest.Exec(t, nodes[0], testbed.SellerStatements...)
	in := start(t, "--database", "mysql://seller:secret@"+proxyToSynced(t, nodes)+"/"+testbed.DefaultDatabase)
	in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"conditional"}`)
	pools := make(map[*testbed.MariaDB]*sql.DB)
	for _, n := range nodes {
		pools[n] = testbedtest.OpenSQL(t, n.URL())
	}
	used := func(n *testbed.MariaDB) (sessions bool) {
		must(t, pools[n].QueryRowContext(t.Context(), "SELECT COUNT(*) > 0 FROM information_schema.processlist WHERE user = 'seller' AND db IS NOT NULL").Scan(&sessions))
		return sessions
	}
	left := nodes[slices.IndexFunc(nodes, used)]
	testbedtest.Exec(t, left, "SET GLOBAL wsrep_desync = ON")
	testbedtest.Eventually(t, "no session is left at the node", func() bool { return !used(left) })
	testbedtest.Eventually(t, "an order is placed", func() bool {
		return ask(t.Context(), http.DefaultClient, http.MethodPost, in.url+"/api/v1/orders", oneUnit).status == http.StatusCreated
	})
	for range 10 {
		in.want(t, http.StatusCreated, "POST", "/api/v1/orders", oneUnit)
	}
	if used(left) || !slices.ContainsFunc(nodes, used) {
		t.Error("orders were placed at the node that is not in step")
	}
}

// proxyToSynced runs the HAProxy of the page for Galera, but for addresses, and returns its own.
func proxyToSynced(t *testing.T, nodes []*testbed.MariaDB) (address string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/how-to/switch-the-database.md")
	must(t, err)
	page := string(text)
	block := func(start string) string {
		m := regexp.MustCompile("(?s)```\\w+\n(" + regexp.QuoteMeta(start) + ".*?)```").FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("the page has no block that begins with %s", start)
		}
		return m[1]
	}
	program := filepath.Join(t.TempDir(), "is-writer")
	script := swap(t, block("#!/bin/sh"), `--execute=".*"`, `--execute="`+strings.TrimSpace(block("SELECT"))+`"`)
	must(t, os.WriteFile(program, []byte(strings.NewReplacer("=USER", "=seller", "=PASSWORD", "=secret").Replace(script)), 0o700))
	defaults, _, _ := strings.Cut(block("defaults"), "listen")
	config := swap(t, defaults, `(?m)^  timeout check .*\n`, "") + swap(t, block("global"), "/etc/haproxy/is-writer", program)
	for i, n := range nodes {
		config = swap(t, config, fmt.Sprintf(`(?m)^  server db%d db%[1]d:3306 check$`, i+1), fmt.Sprintf("  server db%d %s check", i+1, n.Addr()))
	}
	address, output := runHAProxy(t, config, ":3306")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(output)
		}
	})
	return address
}
