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

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// stateOf returns the cluster as the instance at url knows it.
func stateOf(ctx context.Context, t *testing.T, client *http.Client, url string) (s httpapi.ClusterState) {
	t.Helper()
	a := ask(ctx, client, http.MethodGet, url+"/api/v1/cluster", "")
	if a.status != http.StatusOK {
		t.Fatal(a)
	}
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// names are those of the members.
func names(s httpapi.ClusterState) []string {
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Name)
	}
	return all
}

// knows asks the instance again and again until it knows what ok says, and returns that and how long it took.
func knows(t *testing.T, client *http.Client, url, what string, ok func(httpapi.ClusterState) bool) (httpapi.ClusterState, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	began := time.Now()
	for {
		s := stateOf(ctx, t, client, url)
		if ok(s) {
			return s, time.Since(began)
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: not so after %v: %+v", what, time.Since(began), s)
		}
		time.Sleep(5 * time.Millisecond) // between questions
	}
}

// Three instances know each other, follow one leader and one configuration. The leader is killed under load: another
// one leads, the terms grow, and the database has every order that a customer was promised.
func TestClusterOfThree(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) []string{
		"zookeeper": func(t *testing.T) []string {
			t.Helper()
			return []string{"--zookeeper", testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{}).Addr()}
		},
		"database": func(*testing.T) []string { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clusterOfThree(t, begin(t), testbedtest.Database(t), name == "zookeeper")
		})
	}
}

func clusterOfThree(t *testing.T, flags []string, database string, shared bool) {
	t.Helper()
	client := customers(t)
	flags = append(flags, "--database", database)
	fleet := make(map[string]*instance)
	for i := range 3 {
		name := fmt.Sprint("shop-", i+1)
		fleet[name] = spawn(t, append([]string{"--instance", name}, flags...)...)
	}
	all := []string{"shop-1", "shop-2", "shop-3"}
	first, took := knows(t, client, fleet["shop-1"].url, "three members and a leader", func(s httpapi.ClusterState) bool {
		return slices.Equal(names(s), all) && s.Leader != nil
	})
	meant(t, "three members and a leader known, after the third said that it serves", took, time.Second)
	for _, m := range first.Members {
		if "http://"+m.Address != fleet[m.Name].url || m.Role != "shop" || m.Leads != (m.Name == first.Leader.Name) {
			t.Errorf("%+v", m)
		}
	}

	setsPermits(t, client, fleet, shared)

	dead := first.Leader.Name
	alive := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == dead })
	fleet[alive[0]].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"conditional"}`)
	if shared {
		takesEffect(t, client, fleet)
	}
	placed, stop := buysUntilStopped(t, client, fleet[alive[0]].url, fleet[alive[1]].url)
	for end := time.Now().Add(time.Minute); placed.Load() < 20 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	session := electionTTL
	if shared {
		session = sessionTimeout
	}
	fleet[dead].kill()
	second, took := knows(t, client, fleet[alive[0]].url, "another leader", func(s httpapi.ClusterState) bool {
		return s.Leader != nil && s.Leader.Name != dead
	})
	meant(t, "another leader, after the kill", took, electionTTL+time.Second)
	killed := took
	_, took = knows(t, client, fleet[alive[1]].url, "two members", func(s httpapi.ClusterState) bool { return slices.Equal(names(s), alive) })
	meant(t, "two members known, after the kill", killed+took, session+time.Second)
	stop()
	if second.Leader.Term <= first.Leader.Term {
		t.Errorf("term %d after term %d", second.Leader.Term, first.Leader.Term)
	}
	audits, err := books(t, database).Audit(t.Context(), "a")
	if err != nil || !audits[0].OK() || audits[0].Accepted() < placed.Load() {
		t.Errorf("%d orders were promised: %v, %+v", placed.Load(), err, audits)
	}
	testbedtest.Eventually(t, "the command names the leader", func() bool { // who may be another one by now, on a machine that was paused
		code, out, _ := call(t, noEnv, "cluster", "leader", "--url", fleet[alive[0]].url)
		s := stateOf(t.Context(), t, client, fleet[alive[0]].url)
		return code == 0 && s.Leader != nil && strings.HasPrefix(out, s.Leader.Name+", term ")
	})
}

// setsPermits changes a setting. If settings are shared, all instances know it within a second, and bad changes are refused.
func setsPermits(t *testing.T, client *http.Client, fleet map[string]*instance, shared bool) {
	t.Helper()
	began := time.Now()
	code, out, stderr := configure(t, "permits", "8", fleet["shop-2"].url)
	if (code == 0) != shared || shared && !strings.Contains(out, "permits") || !shared && !strings.Contains(stderr, "without --zookeeper") {
		t.Errorf("config set: exit code %d: %s%s", code, out, stderr)
	}
	if !shared {
		return
	}
	for name := range fleet {
		knows(t, client, fleet[name].url, "permits 8", func(s httpapi.ClusterState) bool {
			return slices.ContainsFunc(s.Config, func(s httpapi.Setting) bool { return s.Name == "permits" && s.Value == "8" })
		})
		meant(t, name+" knows permits, after the command began", time.Since(began), time.Second)
	}
	if code, _, stderr := configure(t, "permits", "9", fleet["shop-3"].url, "--version", "0"); code != 1 || !strings.Contains(stderr, "version") {
		t.Errorf("a write for an old version: exit code %d: %s", code, stderr)
	}
}

// buysUntilStopped buys at two instances. It returns how many orders were placed, and what stops it.
func buysUntilStopped(t *testing.T, client *http.Client, urls ...string) (placed *atomic.Int64, stop func()) {
	t.Helper()
	var (
		group sync.WaitGroup
		ended atomic.Bool
	)
	placed = new(atomic.Int64)
	for i := range 4 {
		group.Go(func() {
			for !ended.Load() {
				if a := purchase(t.Context(), client, urls[i%2], "a"); a.status == http.StatusCreated {
					placed.Add(1)
				} else if !later(a.status, a.body) {
					t.Error(a)
					return
				}
			}
		})
	}
	return placed, func() {
		ended.Store(true)
		group.Wait()
	}
}

// configure sets what instances share, again while the store does not confirm it: to set it twice is to set it.
func configure(t *testing.T, name, value, url string, more ...string) (code int, out, stderr string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
		code, out, stderr = call(t, noEnv, append([]string{"config", "set", name, value, "--url", url}, more...)...)
		unsure := strings.Contains(stderr, "may have been carried out") || strings.Contains(stderr, "is unavailable") || strings.Contains(stderr, "until its time limit")
		if code == 0 || !unsure || time.Now().After(end) {
			return code, out, stderr
		}
	}
}

// meant logs a measured time, and fails the test only if it is far beyond the limit. A machine that is busy with
// other work may exceed the limit.
func meant(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	t.Logf("%s: %v, meant are %v", what, took.Round(time.Millisecond), limit)
	if took > limit+time.Minute {
		t.Errorf("%s took %v, meant are %v", what, took, limit)
	}
}

// takesEffect sets how long an order waits for payment, how often timers are reconciled and what is logged. It returns when each
// instance knows, gives new orders that time, and logs that.
func takesEffect(t *testing.T, client *http.Client, fleet map[string]*instance) {
	t.Helper()
	for name, in := range fleet {
		if strings.Contains(in.stderr.String(), `"level":"DEBUG"`) {
			t.Errorf("%s tells too much from the beginning", name)
		}
	}
	for at, set := range map[string][2]string{"shop-1": {"order-ttl", "1m30s"}, "shop-2": {"reconciler-pace", "200ms"}, "shop-3": {"log-level", "DEBUG"}} {
		began := time.Now()
		if code, out, stderr := configure(t, set[0], set[1], fleet[at].url); code != 0 {
			t.Errorf("config set: exit code %d: %s%s", code, out, stderr)
		}
		for name, in := range fleet {
			knows(t, client, in.url, set[0], func(s httpapi.ClusterState) bool {
				return slices.ContainsFunc(s.Config, func(s httpapi.Setting) bool { return s.Name == set[0] && s.Value == set[1] })
			})
			meant(t, name+" knows "+set[0]+", after the command began", time.Since(began), time.Second)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for name, in := range fleet {
		for {
			var o struct {
				CreatedAt time.Time `json:"created_at"`
				ExpiresAt time.Time `json:"expires_at"`
			}
			a := served(ctx, client, in.url, "a")
			if err := json.Unmarshal([]byte(a.body), &o); err != nil || a.status != http.StatusCreated {
				t.Fatal(a, err)
			}
			if ttl := o.ExpiresAt.Sub(o.CreatedAt); ttl > 89*time.Second && ttl < 91*time.Second && strings.Contains(in.stderr.String(), `"level":"DEBUG"`) {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s gives an order %v, or does not log requests", name, o.ExpiresAt.Sub(o.CreatedAt))
			}
		}
	}
}
