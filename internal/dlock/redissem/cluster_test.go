package redissem_test

import (
	"strings"
	"testing"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Every script and notification stays in one slot.
func TestSemaphoresOnCluster(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	nodes := testbedtest.StartCluster(t)
	url := "redis+cluster://" + strings.Join(nodes.Addrs(), ",")
	h := redistest.SemaphoreHarness(t, url)
	h.Behind, h.Wipe = nil, nil // each node would need a proxy
	dlocktest.RunSemaphore(t, h)
}
