package e2e_test

import (
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
			must(t, nodes[2].Restart(t.Context()))
		}, "", nil},
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
