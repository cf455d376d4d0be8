package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestRollingChangeOfEtcd replaces instances by others with another etcd, whose tokens are low. While one of each kind runs, the row refuses
// the low tokens, before a rebase and after it: no SKU of etcd is sold under both. A rebase after the last previous instance ends it.
func TestRollingChangeOfEtcd(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	previous, _ := etcdWithData(t)
	next := testbedtest.StartEtcd(t, testbed.EtcdConfig{}).Addr()
	database, client := testbedtest.Database(t), customers(t)
	begin := func(name, etcd string) *instance {
		return start(t, "--instance", name, "--database", database, "--etcd", etcd)
	}
	sells := func(in *instance) {
		t.Helper()
		for _, sku := range []string{"etcd-cohort", "conditional"} {
			if a := served(t.Context(), client, in.url, sku); a.status != http.StatusCreated {
				t.Errorf("%s: %v", sku, a)
			}
		}
	}
	refuses := func(in *instance) {
		t.Helper()
		a := purchase(t.Context(), client, in.url, "etcd-cohort")
		for end := time.Now().Add(time.Minute); !strings.Contains(a.body, "shop fence rebase"); a = purchase(t.Context(), client, in.url, "etcd-cohort") {
			if a.status != http.StatusServiceUnavailable && a.status != http.StatusTooManyRequests || time.Now().After(end) {
				t.Fatalf("with a low token: %v", a)
			}
		}
		if a := served(t.Context(), client, in.url, "conditional"); a.status != http.StatusCreated {
			t.Error(a)
		}
	}
	rebase := func() {
		shows(t, []string{"fence", "rebase", "etcd-cohort", "--database", database}, "raised the token offset")
	}

	old := [2]*instance{begin("old-1", previous), begin("old-2", previous)}
	for _, sku := range []string{"etcd-cohort", "conditional"} {
		old[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":1000,"strategy":"`+sku+`"}`)
	}
	sells(old[0])
	old[0].stop()
	later := begin("later-1", next)
	sells(old[1])
	refuses(later)
	rebase()
	sells(later)
	sells(old[1])
	refuses(later)
	old[1].stop()
	old[1].stopped(t)
	refuses(later)
	rebase()
	sells(later)
	sells(begin("later-2", next))
	shows(t, []string{"audit", "--database", database}, "etcd-cohort", "ok")
}
