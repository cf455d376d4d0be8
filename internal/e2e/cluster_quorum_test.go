package e2e_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// releasedByOthers returns the orders whose units were released by another instance than the one of that name.
func releasedByOthers(t *testing.T, db *sql.DB, name string) (ids []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT order_id FROM ledger WHERE movement = 'RELEASE' AND instance <> ?", name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// Two of three servers of ZooKeeper are stopped under three instances. Orders are placed at all instances, with
// notifications. The leader dies, and another instance leads in a later term. The orders whose timers only the dead
// instance had expire nevertheless, once and in time. When the servers have recovered the list of members is right.
func TestThreeInstancesWithoutAQuorum(t *testing.T) {
	t.Parallel()
	servers, database := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{}), testbedtest.Database(t)
	store, db, client := books(t, database), testbedtest.OpenSQL(t, database), customers(t)
	fleet, stalls := make(map[string]*instance), detectStalls(t)
	all := []string{"shop-1", "shop-2", "shop-3"}
	for i, name := range all {
		fleet[name] = spawn(t, "--instance", name, "--database", database, "--order-ttl", "8s",
			"--zookeeper", servers.Addrs()[i]+","+servers.Addrs()[(i+1)%3]+","+servers.Addrs()[(i+2)%3])
	}
	first, _ := knows(t, client, fleet["shop-1"].url, "three members and a leader", func(s httpapi.ClusterState) bool {
		return slices.Equal(names(s), all) && s.Leader != nil
	})
	fleet["shop-1"].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"conditional"}`)
	const each = 10
	buyTen := func(in *instance) (ids []string) {
		for range each {
			ids = append(ids, buyOne(t, client, in.url))
		}
		return ids
	}
	buyTen(fleet["shop-1"])
	doWithTwo(t, servers, (*testbed.ZooKeeper).Pause)
	began := time.Now()
	for _, name := range all {
		knows(t, client, fleet[name].url, "that its state may be old", func(s httpapi.ClusterState) bool { return s.Stale != "" })
	}
	t.Logf("without a quorum all instances know that their list is old after %v", time.Since(began).Round(time.Millisecond))

	living := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == first.Leader.Name })
	listened, dies := fleet[living[0]], fleet[first.Leader.Name]
	watcher := newPage(t, "?types=order")
	watcher.follow(t, listened.url)
	ids := buyTen(listened)
	buyTen(fleet[living[1]])
	buyTen(dies)
	dies.kill()
	leadsAgain(t, client, listened.url, first.Leader.Term)
	late := expired(t, store, "a", 4*each)
	t.Logf("the latest expired %v after its time, %v after the quorum was lost", late.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	notifiedOfOwn(t, db, watcher, ids, living[0], stalls)

	doWithTwo(t, servers, (*testbed.ZooKeeper).Resume)
	knows(t, client, listened.url, "the two that live", func(s httpapi.ClusterState) bool {
		return s.Stale == "" && slices.Equal(names(s), living)
	})
	buyTen(listened)
	expired(t, store, "a", 5*each)
	balanced(t, store, "a")
	if code, out, stderr := call(t, noEnv, "audit", "--database", database); code != 0 {
		t.Errorf("audit: exit code %d: %s%s", code, out, fmt.Sprint(stderr))
	}
}

// doWithTwo does something with two of three servers, which are a quorum.
func doWithTwo(t *testing.T, servers *testbed.ZooKeeperEnsemble, do func(*testbed.ZooKeeper) error) {
	t.Helper()
	for _, s := range servers.Nodes()[:2] {
		if err := do(s); err != nil {
			t.Fatal(err)
		}
	}
}

// notifiedOfOwn waits until a page has the end of each order that the instance with this name released.
func notifiedOfOwn(t *testing.T, db *sql.DB, watcher *page, ids []string, instance string, stalls *stallDetector) {
	t.Helper()
	// Without Redis an instance publishes only its own work. On a machine that was paused, another instance may have
	// released the order.
	others := releasedByOthers(t, db, instance)
	received := 0
	for _, id := range ids {
		if slices.Contains(others, id) {
			continue
		}
		testbedtest.Eventually(t, "the end of the order is notified", func() bool { return watcher.status(id) == string(order.Expired) })
		received++
	}
	if received == 0 && stalls.total() == 0 {
		t.Errorf("%s has released none of its orders", instance)
	}
}

// leadsAgain waits for a leader of a later term.
func leadsAgain(t *testing.T, client *http.Client, url string, leaderTerm int64) {
	t.Helper()
	second, took := knows(t, client, url, "another term", func(s httpapi.ClusterState) bool {
		return s.Leader != nil && s.Leader.Term > leaderTerm
	})
	t.Logf("%s leads %v after the kill", second.Leader.Name, took.Round(time.Millisecond))
}
