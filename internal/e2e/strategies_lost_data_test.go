package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/zookeeper"
)

// ZooKeeper and etcd count their fences from the start when they have lost their data. The
// books refuse these, whoever brings them, and nothing is sold until somebody says where they
// count from.
func TestLockServiceThatLostItsData(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) (address string, loseData func(context.Context) error){
		"zookeeper": func(t *testing.T) (string, func(context.Context) error) {
			t.Helper()
			z := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
			session, err := zookeeper.Connect(t.Context(), zookeeper.Config{Servers: []string{z.Addr()}})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close(context.WithoutCancel(t.Context()))
			if err := session.EnsureContainer(t.Context(), "/other"); err != nil {
				t.Fatal(err)
			}
			changes(t, func(ctx context.Context) error {
				_, err := session.Set(ctx, "/other", nil, -1)
				return err
			})
			return z.Addr(), z.RestartEmpty
		},
		"etcd": func(t *testing.T) (string, func(context.Context) error) {
			t.Helper()
			e := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
			client, err := etcdlock.NewClient(e.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			changes(t, func(ctx context.Context) error {
				_, err := client.Put(ctx, "other", "")
				return err
			})
			return e.Addr(), e.RestartEmpty
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, loseData := begin(t)
			database := sqliteURL(t)
			r := start(t, "--database", database, "--"+name, address)
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":100,"strategy":"`+name+`"}`)
			for range 3 {
				r.place(t)
			}
			if err := loseData(t.Context()); err != nil {
				t.Fatal(err)
			}
			client := customers(t)
			refused := purchase(t.Context(), client, r.url, "a", "Prefer", "wait=0")
			for deadline := time.Now().Add(3 * time.Minute); !strings.Contains(refused.body, "shop fence rebase"); {
				// Until the service has recovered for this instance it is unavailable.
				if refused.status != http.StatusServiceUnavailable || time.Now().After(deadline) {
					t.Fatalf("from a service without data: %v", refused)
				}
				refused = purchase(t.Context(), client, r.url, "a")
			}
			var sku struct {
				Reserved int
				Fence    int64
			}
			if err := json.Unmarshal([]byte(r.want(t, http.StatusOK, "GET", "/api/v1/skus/a", "")), &sku); err != nil || sku.Reserved != 3 {
				t.Fatalf("%+v, %v", sku, err)
			}
			unused := regexp.MustCompile(`(?m)^new +` + name + `-cohort +0 +0 +\d+ +no$`) // of the same service
			listed := func(rebase string) {
				t.Helper()
				code, out, stderr := call(t, noEnv, "fence", "list", "--"+name, address, "--database", database)
				if row := regexp.MustCompile(`(?m)^a +` + name + ` +\d+ +\d+ +\d+ +` + rebase + `$`); code != 0 || !row.MatchString(out) || !unused.MatchString(out) {
					t.Errorf("exit code %d: want %s and %s: %s%s", code, row, unused, out, stderr)
				}
			}
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/new", `{"on_hand":1,"strategy":"`+name+`-cohort"}`)
			listed("needed")
			code, out, stderr := call(t, noEnv, "fence", "rebase", "a", "--database", database)
			if code != 0 || !strings.Contains(out, name) {
				t.Fatalf("exit code %d: %s%s", code, out, stderr)
			}
			listed("no")
			before := sku.Fence
			for range 3 {
				r.place(t)
			}
			if err := json.Unmarshal([]byte(r.want(t, http.StatusOK, "GET", "/api/v1/skus/a", "")), &sku); err != nil || sku.Reserved != 6 || sku.Fence <= before {
				t.Errorf("after a fence of %d: %+v, %v", before, sku, err)
			}
			if code, out, stderr := call(t, noEnv, "audit", "--database", database); code != 0 {
				t.Errorf("audit: exit code %d: %s%s", code, out, stderr)
			}
		})
	}
}

// changes makes more changes than an order gets to that is tried again and again. One that the service does not confirm, on a
// machine that was paused, is made again.
func changes(t *testing.T, change func(context.Context) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	for range 50 {
		group.Go(func() error {
			for range 400 {
				err := change(ctx)
				for end := time.Now().Add(time.Minute); err != nil && ctx.Err() == nil && time.Now().Before(end); err = change(ctx) {
					<-time.After(100 * time.Millisecond)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
