package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// server is one of several that can be stopped for a while.
type server interface {
	Pause() error
	Resume() error
}

// While most of the servers of a lock service are stopped, orders that need it are answered 503
// in time and change nothing; the others go on, and when the servers do so do all.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	for strategy, begin := range map[string]func(t *testing.T) (address string, majority []server){
		"redlock": func(t *testing.T) (string, []server) {
			t.Helper()
			var urls []string
			var servers []server
			for range 3 {
				s := testbedtest.StartRedis(t, testbed.RedisConfig{})
				urls, servers = append(urls, s.URL()), append(servers, s)
			}
			return strings.Join(urls, ","), servers[1:]
		},
		"zookeeper": func(t *testing.T) (string, []server) {
			t.Helper()
			e := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
			return strings.Join(e.Addrs(), ","), []server{e.Nodes()[0], e.Nodes()[1]}
		},
		"etcd": func(t *testing.T) (string, []server) {
			t.Helper()
			c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
			return strings.Join(c.Addrs(), ","), []server{c.Members()[0], c.Members()[1]}
		},
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			address, majority := begin(t)
			database := sqliteURL(t)
			r := start(t, "--database", database, "--"+strategy, address)
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"`+strategy+`"}`)
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/b", `{"on_hand":1000,"strategy":"conditional"}`)
			r.place(t)

			for _, s := range majority {
				if err := s.Pause(); err != nil {
					t.Fatal(err)
				}
			}
			client := customers(t)
			for range 2 {
				a := purchase(t.Context(), client, r.url, "a")
				if a.status != http.StatusServiceUnavailable || strings.Contains(a.body, "outcome-unknown") || a.took > 30*time.Second {
					t.Errorf("without a quorum: %v", a)
				}
				if b := served(t.Context(), client, r.url, "b"); b.status != http.StatusCreated {
					t.Errorf("by another strategy: %v", b)
				}
			}
			if got := r.want(t, http.StatusOK, "GET", "/api/v1/skus/a", ""); !strings.Contains(got, `"reserved":1,`) {
				t.Errorf("the refused orders left something behind: %s", got)
			}

			for _, s := range majority {
				if err := s.Resume(); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			for a := purchase(ctx, client, r.url, "a"); a.status != http.StatusCreated; a = purchase(ctx, client, r.url, "a") {
				if a.status != http.StatusServiceUnavailable && !later(a.status, a.body) || ctx.Err() != nil {
					t.Fatalf("with the quorum back: %v", a)
				}
			}
			if code, out, stderr := call(t, noEnv, "audit", "--database", database); code != 0 {
				t.Errorf("audit: exit code %d: %s%s", code, out, stderr)
			}
		})
	}
}
