package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// unavailable returns the strategies whose lock service is unavailable to the instance.
func (r *instance) unavailable(t *testing.T) (names string) {
	t.Helper()
	var list struct {
		Strategies []struct {
			Name        string
			Available   bool
			Unavailable bool `json:"store_unavailable"`
		}
	}
	if err := json.Unmarshal([]byte(r.want(t, http.StatusOK, "GET", "/api/v1/strategies", "")), &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Strategies {
		if s.Unavailable {
			names += s.Name + " "
		}
		if s.Unavailable && !s.Available {
			t.Errorf("the service of %s is unavailable and was not configured", s.Name)
		}
	}
	return names
}

// basket orders a unit of each SKU.
func basket(ctx context.Context, client *http.Client, url string, skus ...string) answer {
	items := make([]string, len(skus))
	for i, sku := range skus {
		items[i] = `{"sku":"` + sku + `","quantity":1}`
	}
	return ask(ctx, client, "POST", url+"/api/v1/orders", `{"customer_id":"c1","items":[`+strings.Join(items, ",")+`]}`)
}

// TestStartWithoutLockServices: an instance starts while its lock services are unavailable, logs them, and sells the other SKUs.
// No order waits for the services, not even a basket that holds the lock of another SKU. After they recover, all SKUs are sold.
func TestStartWithoutLockServices(t *testing.T) {
	t.Parallel()
	z, e := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{}), testbedtest.StartEtcd(t, testbed.EtcdConfig{})
	var urls []string
	killed := []interface {
		Kill() error
		Restart(ctx context.Context) error
	}{z, e}
	for range 3 {
		s := testbedtest.StartRedis(t, testbed.RedisConfig{})
		urls, killed = append(urls, s.URL()), append(killed, s)
	}
	for _, s := range killed {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	database := sqliteURL(t)
	secret := strings.Replace(strings.Join(urls, ","), "redis://", "redis://:secret@", 1)
	r := start(t, "--database", database, "--zookeeper", z.Addr(), "--etcd", e.Addr(), "--redlock", secret)
	for service, address := range map[string]string{"zookeeper": z.Addr(), "etcd": e.Addr(), "redlock": strings.TrimPrefix(urls[2], "redis://")} {
		lines := 0
		for line := range strings.Lines(r.stderr.String()) {
			if strings.Contains(line, "unavailable") && strings.Contains(line, service) && strings.Contains(line, address) {
				lines++
			}
		}
		if lines != 1 {
			t.Errorf("%s: %d lines in the log, want one:\n%s", service, lines, r.stderr)
		}
	}
	if log := r.stderr.String(); strings.Contains(log, "secret") || strings.Contains(log, "malformed") {
		t.Errorf("a password, or no URL, is in the log:\n%s", log)
	}
	r.want(t, http.StatusOK, "GET", "/readyz", "")
	if got := r.unavailable(t); got != "redlock zookeeper etcd redlock-cohort zookeeper-cohort etcd-cohort " {
		t.Errorf("unavailable: %s", got)
	}
	for sku, strategy := range map[string]string{"a": "sql", "r": "redlock", "z": "zookeeper-cohort", "e": "etcd"} {
		r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":1000,"strategy":"`+strategy+`"}`)
	}
	client := customers(t)
	for _, skus := range [][]string{{"a", "z"}, {"a", "e"}, {"a", "r"}, {"z"}} {
		if a := basket(t.Context(), client, r.url, skus...); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "store-unavailable") {
			t.Errorf("%q: %v", skus, a)
		}
		if a := served(t.Context(), client, r.url, "a", "Prefer", "wait=0"); a.status != http.StatusCreated {
			t.Errorf("alongside %q: %v", skus, a)
		}
	}

	for _, s := range killed {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(3 * time.Minute); r.unavailable(t) != ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("unavailable: %s\n%s", r.unavailable(t), r.stderr)
		}
	}
	if a := insist(func() answer { return basket(t.Context(), client, r.url, "a", "e", "r", "z") }); a.status != http.StatusCreated {
		t.Error(a)
	}
	if n, again := strings.Count(r.stderr.String(), "lock service recovered"), strings.Count(r.stderr.String(), "lock service unavailable"); n < 3 || n > again {
		t.Errorf("the log has %d recovered services:\n%s", n, r.stderr)
	}
}

// TestBasketOfADeadLockService: a lock service that becomes unavailable delays the orders that need it once. Later orders are
// refused at once, so that they hold no lock that other orders need.
func TestBasketOfADeadLockService(t *testing.T) {
	t.Parallel()
	e := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
	r := start(t, "--database", sqliteURL(t), "--etcd", e.Addr())
	for sku, strategy := range map[string]string{"a": "sql", "b": "etcd"} {
		r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":1000,"strategy":"`+strategy+`"}`)
	}
	client := customers(t)
	if a := insist(func() answer { return basket(t.Context(), client, r.url, "a", "b") }); a.status != http.StatusCreated {
		t.Fatal(a)
	}
	if err := e.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); r.unavailable(t) != "etcd etcd-cohort "; {
		if a := basket(t.Context(), client, r.url, "a", "b"); a.status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("unavailable: %s: %v", r.unavailable(t), a)
		}
	}
	stalls, stop := detectStalls(t), make(chan struct{})
	done := make(chan []answer)
	go func() {
		done <- together(4, func(int) (last answer) {
			for {
				select {
				case <-stop:
					return last
				default:
					last = basket(t.Context(), client, r.url, "a", "b")
				}
			}
		})
	}()
	refused := 0
	for range 20 { // each may have to wait for the release of the lock by the one before, which was answered at its commit
		if a := purchase(t.Context(), client, r.url, "a", "Prefer", "wait=5"); later(a.status, a.body) {
			refused++
		} else if a.status != http.StatusCreated {
			t.Errorf("alongside baskets that are refused: %v", a)
		}
	}
	if refused > 0 && stalls.total() == 0 || refused > 10 { // one that was paused may have left its lease to the TTL
		t.Errorf("alongside baskets that are refused %d of 20 orders are", refused)
	}
	close(stop)
	for _, a := range <-done {
		if a.status != http.StatusServiceUnavailable {
			t.Error(a)
		}
	}
}

// TestOnePausedEtcdMemberKeepsTheService: calls to a paused member wait. The two other members grant locks, so that the service
// is available and orders are placed.
func TestOnePausedEtcdMemberKeepsTheService(t *testing.T) {
	t.Parallel()
	c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	members := c.Nodes()
	follower := members[slices.IndexFunc(members, func(m *testbed.Etcd) bool { return m != leader })]
	r := start(t, "--database", sqliteURL(t), "--etcd", strings.Join(c.Addrs(), ","))
	const buyers = 6
	for i := range buyers {
		r.want(t, http.StatusCreated, "PUT", fmt.Sprint("/api/v1/skus/s", i), `{"on_hand":100000,"strategy":"etcd"}`)
	}
	if err := follower.Pause(); err != nil {
		t.Fatal(err)
	}
	client := customers(t)
	// Where the machine is slow for a while the other two have no leader either, and the service is unavailable.
	for tries := 1; ; tries++ {
		placed, refused, unavailable, polls := buyFor(t, client, r, buyers, 8*time.Second)
		t.Logf("%d orders placed, %d refused; etcd unavailable in %d of %d polls", placed, refused, unavailable, polls)
		if placed > 0 && 2*unavailable <= polls {
			break
		}
		if tries == 5 {
			t.Errorf("%d orders placed, and etcd unavailable in %d of %d polls, with two members of three", placed, unavailable, polls)
			break
		}
	}
	if err := follower.Resume(); err != nil {
		t.Error(err)
	}
}

// buyFor has each of so many buyers buy a SKU of its own for a while, and polls whether etcd is unavailable meanwhile.
func buyFor(t *testing.T, client *http.Client, r *instance, buyers int, d time.Duration) (placed, refused int64, unavailable, polls int) {
	t.Helper()
	end := time.Now().Add(d)
	var yes, no atomic.Int64
	var group sync.WaitGroup
	for i := range buyers {
		group.Go(func() {
			for time.Now().Before(end) {
				switch a := purchase(t.Context(), client, r.url, fmt.Sprint("s", i)); a.status {
				case http.StatusCreated:
					yes.Add(1)
				case http.StatusServiceUnavailable:
					no.Add(1)
				default:
					t.Errorf("%+v", a)
				}
				<-time.After(20 * time.Millisecond)
			}
		})
	}
	for ; time.Now().Before(end); polls++ {
		if strings.Contains(r.unavailable(t), "etcd ") {
			unavailable++
		}
		<-time.After(20 * time.Millisecond)
	}
	group.Wait()
	return yes.Load(), no.Load(), unavailable, polls
}
