package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// priced is a shop whose faults are priced: two instances, the services that they use, and buyers.
type priced struct {
	t      *testing.T
	client *http.Client
	redis  *testbed.Redis
	flags  []string

	mu     sync.Mutex
	fleet  []*instance
	placed map[string][]sale // by strategy; nil: sales are not recorded
}

// sale is a placed order.
type sale struct {
	at       time.Time
	instance string
}

// newPriced starts a shop. It has every lock service that the strategies need.
func newPriced(t *testing.T, strategies []string) *priced {
	t.Helper()
	s := &priced{t: t, client: customers(t), redis: testbedtest.StartRedis(t, testbed.RedisConfig{}), fleet: make([]*instance, 2)}
	s.flags = []string{"--database", testbedtest.Database(t), "--redis", s.redis.URL()}
	if slices.Contains(strategies, "redlock") {
		var urls []string
		for range 3 {
			urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
		}
		s.flags = append(s.flags, "--redlock", strings.Join(urls, ","))
	}
	if slices.Contains(strategies, "zookeeper") {
		s.flags = append(s.flags, "--zookeeper", testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{Tick: deployedTick(t)}).Addr())
	}
	if slices.Contains(strategies, "etcd") {
		s.flags = append(s.flags, "--etcd", testbedtest.Etcd(t))
	}
	for i := range s.fleet {
		s.start(i)
	}
	return s
}

// deployedTick returns the tick of ZooKeeper in the deployment.
func deployedTick(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("../../deployments/zoo.cfg")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^tickTime=(\d+)$`).FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("deployments/zoo.cfg has no tickTime")
	}
	ms, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

func (s *priced) start(i int) {
	s.t.Helper()
	instance := spawn(s.t, append(s.flags, "--instance", fmt.Sprint("shop-", i))...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet[i] = instance
}

func (s *priced) instance(i int) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet[i]
}

func (s *priced) signal(sig syscall.Signal) { s.instance(0).signal(s.t, sig) }

// buy orders until ctx ends, also when it is refused.
func (s *priced) buy(ctx context.Context, url func() string, strategy, sku string) {
	for ctx.Err() == nil {
		a := purchase(ctx, s.client, url(), sku)
		if a.status != http.StatusCreated {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		s.mu.Lock()
		s.placed[strategy] = append(s.placed[strategy], sale{time.Now(), a.header.Get("X-Instance-Id")})
		s.mu.Unlock()
	}
}

// sell has two buyers of each strategy order one SKU from each instance, until stop is called.
func (s *priced) sell(strategies []string) (stop func()) {
	s.t.Helper()
	return s.crowd(strategies, func(ctx context.Context, strategy string, buyer int) {
		i := buyer % len(s.fleet)
		s.buy(ctx, func() string { return s.instance(i).url }, strategy, strategy)
	})
}

// sellThrough has buyers order from a balancer, each another SKU, until stop is called.
func (s *priced) sellThrough(url string, strategies []string) (stop func()) {
	s.t.Helper()
	return s.crowd(strategies, func(ctx context.Context, strategy string, buyer int) {
		s.buy(ctx, func() string { return url }, strategy, fmt.Sprint(strategy, "-", buyer))
	})
}

// crowd has four buyers of each strategy buy until stop is called.
func (s *priced) crowd(strategies []string, buy func(ctx context.Context, strategy string, buyer int)) (stop func()) {
	s.t.Helper()
	s.placed = map[string][]sale{}
	ctx, cancel := context.WithCancel(s.t.Context())
	var buyers sync.WaitGroup
	for _, strategy := range strategies {
		s.offer(strategy, strategy)
		for i := range 4 {
			s.offer(fmt.Sprint(strategy, "-", i), strategy)
			buyers.Go(func() { buy(ctx, strategy, i) })
		}
	}
	return func() {
		cancel()
		buyers.Wait()
	}
}

// offer makes a SKU, unless it exists.
func (s *priced) offer(sku, strategy string) {
	s.t.Helper()
	a := ask(s.t.Context(), s.client, http.MethodPut, s.instance(0).url+"/api/v1/skus/"+sku, `{"on_hand":10000000,"strategy":"`+strategy+`"}`)
	if a.status != http.StatusCreated && a.status != http.StatusOK {
		s.t.Fatal(a)
	}
}

// sold waits until each instance has sold ten units by each strategy since then.
func (s *priced) sold(strategies []string, since time.Time) {
	s.t.Helper()
	testbedtest.Eventually(s.t, fmt.Sprint(strategies, " are sold"), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, strategy := range strategies {
			n := map[string]int{}
			for _, sale := range slices.Backward(s.placed[strategy]) {
				if sale.at.Before(since) {
					break
				}
				n[sale.instance]++
			}
			if min(n["shop-0"], n["shop-1"]) < 10 {
				return false
			}
		}
		return true
	})
}

// fault is something that goes wrong and is mended.
type fault struct {
	name        string
	lasts       time.Duration
	begin, mend func()
}

// price returns for each strategy the longest time without a placed order from a fault until orders are placed again
// after its end.
func (s *priced) price(strategies []string, f fault) map[string]time.Duration {
	s.t.Helper()
	s.sold(strategies, time.Now())
	s.mu.Lock()
	clear(s.placed)
	s.mu.Unlock()
	began := time.Now()
	f.begin()
	<-time.After(f.lasts)
	f.mend()
	s.sold(strategies, time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	prices := map[string]time.Duration{}
	for strategy, sales := range s.placed {
		last := began
		for _, sale := range sales {
			if sale.at.After(last) { // two buyers may have been recorded in another order
				prices[strategy], last = max(prices[strategy], sale.at.Sub(last)), sale.at
			}
		}
	}
	return prices
}
