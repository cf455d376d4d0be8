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

// Instances work with a Redis behind Sentinel and with a cluster: after the server that has the
// lock has died they sell again, and the books are right.
func TestOrdersOverAFailoverOfRedis(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) (address string, fail func(context.Context) error){
		"sentinel": func(t *testing.T) (string, func(context.Context) error) {
			t.Helper()
			s := testbedtest.StartSentinel(t, testbed.SentinelConfig{})
			return "redis+sentinel://" + strings.Join(s.SentinelAddrs(), ",") + "/" + s.MasterName(), func(ctx context.Context) error {
				old, err := s.Master(ctx)
				if err != nil {
					return err
				}
				if err := old.Kill(); err != nil {
					return err
				}
				return s.WaitForFailover(ctx, old)
			}
		},
		"cluster": func(t *testing.T) (string, func(context.Context) error) {
			t.Helper()
			c := testbedtest.StartCluster(t, testbed.ClusterConfig{})
			return "redis+cluster://" + strings.Join(c.Addrs(), ","), func(ctx context.Context) error {
				old, err := c.KillMasterOf(ctx, "shop:lock:{sku:a}")
				if err != nil {
					return err
				}
				return c.WaitForFailover(ctx, "shop:lock:{sku:a}", old)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, fail := begin(t)
			database := sqliteURL(t)
			r := start(t, "--database", database, "--redis", address)
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":100,"strategy":"redis"}`)
			r.place(t)
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute) // after a pause of the machine sentinels do nothing for half a minute
			defer cancel()
			if err := fail(ctx); err != nil {
				t.Fatal(err)
			}
			client, began := customers(t), time.Now()
			for a := served(ctx, client, r.url, "a"); a.status != http.StatusCreated; a = served(ctx, client, r.url, "a") {
				if a.status != http.StatusServiceUnavailable && !later(a.status, a.body) || ctx.Err() != nil {
					t.Fatalf("after the failover: %v", a)
				}
			}
			t.Logf("sold again %v after the failover", time.Since(began).Round(time.Millisecond))
			if code, out, stderr := call(t, noEnv, "audit", "--database", database); code != 0 {
				t.Errorf("audit: exit code %d: %s%s", code, out, stderr)
			}
		})
	}
}
