package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// ZooKeeper and etcd count their fences from the start when they have lost their data. The
// books refuse these, whoever brings them, and nothing is sold until somebody says where they
// count from.
func TestLockServiceThatLostItsData(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) (address string, loseData func(context.Context) error){
		"zookeeper": zooKeeperWithData, "etcd": etcdWithData,
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

// zooKeeperWithData starts a server that others have used, and returns how it loses its data.
func zooKeeperWithData(t *testing.T) (address string, loseData func(context.Context) error) {
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
}

// etcdWithData is zooKeeperWithData for etcd.
func etcdWithData(t *testing.T) (address string, loseData func(context.Context) error) {
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

// empty returns what empties servers of Redis.
func empty(t *testing.T, urls ...string) func(context.Context) error {
	t.Helper()
	var servers []redis.UniversalClient
	for _, u := range urls {
		rdb, err := redisclient.New(u)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.Close() })
		servers = append(servers, rdb)
	}
	return func(ctx context.Context) error {
		var errs []error
		for _, rdb := range servers {
			errs = append(errs, rdb.FlushAll(ctx).Err())
		}
		return errors.Join(errs...)
	}
}

// crashing returns what kills a server and starts it again.
func crashing(kill func() error, restart func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return errors.Join(kill(), restart(ctx)) }
}

// faultySale has the responses to customers who ask until they get one.
type faultySale struct {
	client *http.Client

	mu        sync.Mutex
	urls      []string        // of the instances that are there
	kept      map[string]bool // ids of the orders that customers have
	cancelled int
}

func (s *faultySale) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) + s.cancelled
}

// forget takes an instance out.
func (s *faultySale) forget(gone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = append([]string{}, strings.Fields(strings.ReplaceAll(strings.Join(s.urls, " "), gone, ""))...)
}

func (s *faultySale) anywhere() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.urls[rand.N(len(s.urls))]
}

// insist asks with one key until somebody answers with something else than that it is busy.
func (s *faultySale) insist(ctx context.Context, key, path, body string) (a answer) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && ctx.Err() == nil; {
		patient, cancel := context.WithTimeout(ctx, 3*time.Second) // an instance that is stopped says nothing
		a = ask(patient, s.client, http.MethodPost, s.anywhere()+path, body, "Idempotency-Key", key)
		cancel()
		busy := a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests // without Redis there are no new permits
		if a.err == nil && !busy && !strings.Contains(a.body, "in-flight") {
			return a
		}
		<-time.After(5 * time.Millisecond)
	}
	return a
}

// buy buys one unit, and cancels every third order.
func (s *faultySale) buy(ctx context.Context, key string) error {
	a := s.insist(ctx, key, "/api/v1/orders", oneUnit)
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &o); a.err != nil || a.status != http.StatusCreated || err != nil {
		return fmt.Errorf("order %s: %v", key, a)
	}
	cancels := rand.N(3) == 0
	if cancels {
		if a := s.insist(ctx, key, "/api/v1/orders/"+o.ID+"/cancel", ""); a.err != nil || a.status != http.StatusOK {
			return fmt.Errorf("cancel %s: %v", key, a)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kept[o.ID]:
		return fmt.Errorf("order %s was given to two customers", o.ID)
	case cancels:
		s.cancelled++
	default:
		s.kept[o.ID] = true
	}
	return nil
}
