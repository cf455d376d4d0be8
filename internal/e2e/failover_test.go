package e2e_test

import (
	"context"
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

// TestSilentDatabaseDelaysNoAnswer: the database receives nothing and answers nothing for 12 s, while orders with keys come in. The API
// promises an answer within 10 s, also to those that wait for a lock all the time. A busy machine gets more time. Sent again with its
// key, each order is placed once.
func TestSilentDatabaseDelaysNoAnswer(t *testing.T) {
	t.Parallel()
	s, strategies := newStage(t), []string{"conditional", "redis", "redis-cohort", "sql", "sql-cohort"}
	proxy, proxied := behind(t, s.database)
	in, client, stalls := spawn(t, "--database", proxied, "--redis", s.redis), customers(t), detectStalls(t)
	for _, sku := range strategies {
		in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":1000,"strategy":"`+sku+`"}`)
	}
	most := 10*time.Second + time.Duration(testbedtest.Size(2000, 500))*time.Millisecond // a request to an instance with the race detector waits, too
	var all sync.WaitGroup
	var refused atomic.Int64
	buy := func(n int) answer {
		return purchase(t.Context(), client, in.url, strategies[n%len(strategies)], "Idempotency-Key", fmt.Sprint("silent-", n))
	}
	held := hold(t, s.locks(t), "sku:redis")
	const n = 150
	var took [n]time.Duration
	for i := range n {
		switch i { // 10 a second
		case 20:
			proxy.BlackHole()
		case 140:
			must(t, proxy.Pass())
			free(t, held)
		}
		all.Go(func() {
			before := stalls.total()
			a := buy(i)
			if a.took -= stalls.total() - before; a.err != nil || a.took > most {
				t.Errorf("%s: %v", strategies[i%len(strategies)], a)
			}
			if took[i] = a.took; a.status == http.StatusCreated {
				return
			}
			refused.Add(1)
			if !later(a.status, a.body) && a.status != http.StatusTooManyRequests && !strings.Contains(a.body, "/outcome-unknown") {
				t.Errorf("%s: %v", strategies[i%len(strategies)], a)
			}
		})
		<-time.After(100 * time.Millisecond)
	}
	all.Wait()
	longest := slices.Max(took[:])
	t.Logf("%d of %d were refused; the last answer came after %v", refused.Load(), n, longest)
	if refused.Load() < 20 || longest < 8*time.Second {
		t.Error("the database was silent, and orders did not wait until their limit")
	}
	onceMore(t, n, buy)
	placed := 0
	must(t, testbedtest.OpenSQL(t, s.database).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&placed))
	if placed != n {
		t.Errorf("%d orders of %d keys", placed, n)
	}
	store := books(t, s.database)
	for _, sku := range strategies {
		audited(t, store, sku)
	}
}

// onceMore sends n requests again, ten at a time, until each order is placed.
func onceMore(t *testing.T, n int, buy func(i int) answer) {
	t.Helper()
	keys := make(chan int, n)
	for i := range n {
		keys <- i
	}
	close(keys)
	together(10, func(int) (a answer) {
		for i := range keys {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
				if a = buy(i); a.status == http.StatusCreated {
					break
				}
			}
			if a.status != http.StatusCreated {
				t.Errorf("once more: %v", a)
			}
		}
		return a
	})
}

// An instance is paused until the deadline of orders that wait for a lease has passed, and its connections to the database
// break meanwhile. Every answer that it gives afterwards is a documented one.
func TestPausedInstanceGivesDocumentedAnswers(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	proxy, proxied := behind(t, database)
	in, client := spawn(t, "--database", proxied), customers(t)
	in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"sql"}`)
	// Somebody else has the lease, and renews it.
	db := testbedtest.OpenSQL(t, database)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	held, release := context.WithCancel(t.Context())
	defer release()
	renew := func() error {
		_, err := db.ExecContext(held, `REPLACE INTO leases (name, owner, fence, forced, since_at, expires_at)
			VALUES ('sku:a', 'another', 1, 0, 0, ?)`, time.Now().Add(2*time.Second).UnixMicro())
		return err
	}
	if err := renew(); err != nil {
		t.Fatal(err)
	}
	renewing.Go(func() {
		for renew() == nil {
			<-time.After(200 * time.Millisecond)
		}
	})
	const orders = 30
	done, sent := make(chan []answer), time.Now()
	go func() {
		done <- together(orders, func(int) answer {
			return ask(t.Context(), client, "POST", in.url+"/api/v1/orders", `{"customer_id":"c1","items":[{"sku":"a","quantity":1}]}`)
		})
	}()
	<-time.After(2 * time.Second) // for the orders to wait; one that comes later is answered all the same
	if err := testbed.Suspend(in.cmd.Process); err != nil {
		t.Fatal(err)
	}
	proxy.Refuse()
	<-time.After(time.Until(sent.Add(12 * time.Second))) // the deadline of an order is 10 s, and a response has to leave within 15 s
	if err := testbed.Continue(in.cmd.Process); err != nil {
		t.Fatal(err)
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, a := range <-done {
		kinds[fmt.Sprint(a.status)]++
		if a.status != http.StatusCreated && !later(a.status, a.body) {
			t.Errorf("%v", a)
		}
	}
	t.Logf("answers by status: %v", kinds)
}

// server is one of several that can be stopped for a while.
type server interface {
	Pause() error
	Resume() error
}

// redisServers starts n, of which the last ones are a majority.
func redisServers(n int) func(t *testing.T) (addresses string, majority []server) {
	return func(t *testing.T) (string, []server) {
		t.Helper()
		var urls []string
		var majority []server
		for i := range n {
			s := testbedtest.StartRedis(t, testbed.RedisConfig{})
			if urls = append(urls, s.URL()); i >= n/2 {
				majority = append(majority, s)
			}
		}
		return strings.Join(urls, ","), majority
	}
}

// While most servers of a lock service are stopped, orders that need it get a 503 in time and change nothing. Other
// orders continue. All orders continue when the servers do.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	for strategy, begin := range map[string]func(t *testing.T) (address string, majority []server){
		"redis":   redisServers(1),
		"redlock": redisServers(3),
		"zookeeper": func(t *testing.T) (string, []server) {
			t.Helper()
			e := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
			return strings.Join(e.Addrs(), ","), []server{e.Nodes()[0], e.Nodes()[1]}
		},
		"etcd": func(t *testing.T) (string, []server) {
			t.Helper()
			c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
			return strings.Join(c.Addrs(), ","), []server{c.Nodes()[0], c.Nodes()[1]}
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
