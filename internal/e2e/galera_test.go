package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Another node is refused while an instance writes to a node of a Galera cluster, and accepted once that has stopped. With
// --allow-multi-writer it is accepted, and the log says what does not hold.
func TestSecondWritingGaleraNodeNeedsAFlag(t *testing.T) {
	t.Parallel()
	nodes := testbedtest.StartGalera(t).Nodes()
	first := start(t, "--database", nodes[0].URL(), "--instance", "shop-1")
	same := start(t, "--database", nodes[0].URL(), "--instance", "shop-2")
	code, _, stderr := call(t, noEnv, "serve", "--listen", "127.0.0.1:0", "--instance", "shop-3", "--database", nodes[1].URL())
	for _, want := range []string{"shop-", "writes to node", "give all instances the same node", "--allow-multi-writer", "two leaders"} {
		if code != 1 || !strings.Contains(stderr, want) {
			t.Fatalf("exit code %d without %q: %s", code, want, stderr)
		}
	}
	allowed := start(t, "--database", nodes[2].URL(), "--instance", "shop-4", "--allow-multi-writer")
	if !strings.Contains(allowed.stderr.String(), "two leaders may work at once") {
		t.Errorf("no warning: %s", allowed.stderr)
	}
	allowed.want(t, http.StatusOK, http.MethodGet, "/api/v1/skus", "")
	testbedtest.Eventually(t, "the first instance warns, too", func() bool {
		return strings.Contains(first.stderr.String(), "instances may write to several nodes")
	})
	for _, in := range []*instance{first, same, allowed} {
		in.stop()
		in.stopped(t)
	}
	start(t, "--database", nodes[1].URL(), "--instance", "shop-3")
}
