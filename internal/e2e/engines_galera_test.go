package e2e_test

import (
	"os"
	"path/filepath"
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
