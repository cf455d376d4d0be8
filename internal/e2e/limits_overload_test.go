package e2e_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// distant returns the URL of a proxy that delays all data that is sent to the database.
func distant(t *testing.T, database string, delay time.Duration) string {
	t.Helper()
	return testbedtest.Relay(t, database, func([]byte) { <-time.After(delay) })
}

// metric returns a metric of an instance, or 0 if it has none with that name.
func (r *instance) metric(t *testing.T, name string) float64 {
	t.Helper()
	page := (&instance{url: r.admin(t)}).want(t, http.StatusOK, "GET", "/metrics", "")
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && strings.Split(fields[0], "{")[0] == name {
			value, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	return 0
}

// memory returns how much an instance has, in MiB; 0 if this system does not report it.
func (r *instance) memory(t *testing.T) int {
	t.Helper()
	return int(r.metric(t, "process_resident_memory_bytes") / (1 << 20))
}

// Ten times as many orders come in as the instances can place. Those who are too many are notified
// so, quickly, and cost those who are served next to nothing. At full size the instances are
// killed one after the other meanwhile.
func TestOverload(t *testing.T) {
	measured(t)
	s, stalls := newStage(t), detectStalls(t)
	flags := []string{"--database", distant(t, s.database, 5*time.Millisecond), "--redis", s.redis, "--permits", strconv.Itoa(testbedtest.Size(4, 12))}
	fleet := make([]*instance, testbedtest.Size(1, 3))
	b := new(balancer)
	use := func(without int) {
		var urls []string
		for i, f := range fleet {
			if i != without {
				urls = append(urls, f.url)
			}
		}
		b.set(urls...)
	}
	for i := range fleet {
		fleet[i] = spawn(t, append(flags, "--instance", fmt.Sprint("shop-", i))...)
	}
	use(-1)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10000000,"strategy":"conditional"}`)
	c := &crowd{client: customers(t), url: b.url, answers: make(map[int]int)}
	hands := testbedtest.Size(4, 12)
	c.steadily(t.Context(), hands, time.Second)
	total := c.reset()
	peak := c.steadily(t.Context(), hands, time.Duration(testbedtest.Size(2, 10))*time.Second)
	total += c.reset()

	before := fleet[0].memory(t)
	goodput := 0.0
	for rate, again := 10*peak, true; again; rate *= 4 { // as the machine may have been paused when the peak was measured
		over := make(chan struct{})
		go func() {
			defer close(over)
			goodput = c.regardless(t.Context(), rate, time.Duration(testbedtest.Size(3, 300))*time.Second)
		}()
		kills(t, fleet, flags, use, over)
		if odd := c.strange(stalls); len(odd) > 0 && len(fleet) == 1 {
			t.Errorf("answers %v, such as %s", odd, c.odd)
		}
		if again = len(c.refused) < len(c.accepted) && rate < 300*peak; again {
			total += c.reset()
		}
	}
	after := 0
	for _, f := range fleet {
		after = max(after, f.memory(t))
	}
	t.Logf("peak %.0f orders/s; at ten times that %.0f/s are placed (%.0f%%), p50 %v, p99 %v; refusals p50 %v, p99 %v; memory %d MiB, before %d; answers %v",
		peak, goodput, 100*goodput/peak, quantile(c.accepted, 50), quantile(c.accepted, 99), quantile(c.refused, 50), quantile(c.refused, 99), after, before, c.answers)
	total += c.answers[http.StatusCreated]
	if least := float64(testbedtest.Size(0, 70)) / 100; goodput < least*peak || len(c.accepted) == 0 { // three seconds alongside other tests show no rate
		t.Errorf("%.0f orders/s are placed, want at least %.0f%% of %.0f/s", goodput, 100*least, peak)
	}
	if len(c.refused) < len(c.accepted) {
		t.Errorf("%d orders were placed and %d refused: this is no overload", len(c.accepted), len(c.refused))
	}
	if p99 := quantile(c.refused, 99); p99 > 20*time.Second+stalls.total() {
		t.Errorf("the p99 of refusals is %v", p99)
	}
	if after > before+300 {
		t.Errorf("%d MiB of memory, %d before", after, before)
	}
	if a := audited(t, books(t, s.database), "a"); a.Reserved < int64(total) || a.Reserved > int64(total+c.unknown) {
		t.Errorf("the books: %v, %d reserved; customers know of %d orders and do not know of %d", a.Broken(), a.Reserved, total, c.unknown)
	}
}

// kills kills one of several instances every 20 s, and starts another in its place, until it
// is over.
func kills(t *testing.T, fleet []*instance, flags []string, use func(without int), over <-chan struct{}) {
	t.Helper()
	for i := 0; ; i = (i + 1) % len(fleet) {
		var next <-chan time.Time
		if len(fleet) > 1 {
			next = time.After(20 * time.Second)
		}
		select {
		case <-over:
			return
		case <-next:
		}
		fleet[i].kill()
		use(i)
		fleet[i] = spawn(t, append(flags, "--instance", fmt.Sprint("shop-", i))...)
		use(-1)
	}
}

// Far more orders come in than an instance with the default permits can place, one by one or in
// group commits. Permits are used up by a burst. Accepted orders then take at most three times as
// long as orders of an idle instance. Round trips to the database are slow: customers on the same
// machine could not overload an instance otherwise. A small run judges only the orders in flight,
// because it has few accepted orders.
func TestAcceptedOrdersAreQuickUnderOverload(t *testing.T) {
	alone(t)
	for strategy, c := range map[string]struct {
		hands int // as many as find permits
		delay time.Duration
	}{
		"local":       {8, 5 * time.Millisecond},
		"conditional": {32, 30 * time.Millisecond},
	} {
		t.Run(strategy, func(t *testing.T) { acceptedAreQuick(t, strategy, c.hands, c.delay) })
	}
}

func acceptedAreQuick(t *testing.T, strategy string, hands int, delay time.Duration) {
	t.Helper()
	full := testbedtest.Size(0, 1) == 1
	database := distant(t, testbedtest.Database(t), delay)
	shop := spawn(t, "--database", database)
	shop.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", fmt.Sprintf(`{"on_hand":10000000,"strategy":%q}`, strategy))
	c := &crowd{client: customers(t), url: func() string { return shop.url }, answers: make(map[int]int)}
	seconds := func(usual, full int) time.Duration { return time.Duration(testbedtest.Size(usual, full)) * time.Second }
	c.steadily(t.Context(), 1, time.Second)
	total := c.reset()
	c.regardless(t.Context(), 5, seconds(2, 20))
	unloaded := slices.Clone(c.accepted)
	total += c.reset()
	peak := c.steadily(t.Context(), hands, seconds(2, 10))
	total += c.reset()

	rate, goodput := min(10*peak, float64(testbedtest.Size(800, 1200))), 0.0 // the customers are on the same machine, which a flood of refusals would keep busy
	c.regardless(t.Context(), rate, time.Second)
	total += c.reset()
	var inUse []float64
	load := func(lasts time.Duration) {
		var load sync.WaitGroup
		over := make(chan struct{})
		load.Go(func() {
			defer close(over)
			goodput = c.regardless(t.Context(), rate, lasts)
		})
		inUse = nil
		for loaded := true; loaded; {
			inUse = append(inUse, shop.metric(t, "shop_permits_in_use"))
			select {
			case <-over:
				loaded = false
			case <-time.After(50 * time.Millisecond):
			}
		}
		load.Wait()
		slices.Sort(inUse)
	}
	load(seconds(3, 60))
	for range 4 { // on a machine that stalls the bound takes longer to fall
		if full || strategy != "local" || inUse[len(inUse)/4] <= 16 {
			break
		}
		total += c.reset()
		load(3 * time.Second)
	}
	ratio := float64(quantile(c.accepted, 99)) / float64(quantile(unloaded, 99))
	t.Logf("unloaded p50 %v, p99 %v; peak %.0f/s; at %.0f/s %.0f/s are placed (%.0f%%), p50 %v, p99 %v (%.1f times); refusals p50 %v, p99 %v; in flight %v to %v, %v in the median; %v",
		quantile(unloaded, 50), quantile(unloaded, 99), peak, rate, goodput, 100*goodput/peak, quantile(c.accepted, 50), quantile(c.accepted, 99), ratio,
		quantile(c.refused, 50), quantile(c.refused, 99), inUse[0], inUse[len(inUse)-1], median(inUse), c.answers)
	if quarter := inUse[len(inUse)/4]; strategy == "local" && quarter > 16 {
		t.Errorf("%v orders are in flight at least, in three quarters of the time: half of the permits are used before any order is refused", quarter)
	}
	if full && (goodput < 0.9*peak || ratio > 3) {
		t.Errorf("want 90%% of the peak, and a p99 of three times the unloaded at most")
	}
	if total += c.answers[http.StatusCreated]; len(c.refused) < len(c.accepted) || c.unknown > 0 {
		t.Errorf("%d orders were placed, %d refused, of %d the outcome is unknown: %s", len(c.accepted), len(c.refused), c.unknown, c.odd)
	}
	if a := audited(t, books(t, database), "a"); a.Reserved != int64(total) {
		t.Errorf("the audit: %v, %d reserved, want %d", a.Broken(), a.Reserved, total)
	}
}

// The database becomes far slower in the middle of a sale, as after a failover to another site. Half a minute later an instance places about as
// many orders as one that has never known it otherwise.
func TestSlowerDatabaseIsNoOverload(t *testing.T) {
	testbedtest.FullSize(t)
	alone(t)
	var delay atomic.Int64
	database := testbedtest.Relay(t, testbedtest.Database(t), func([]byte) { <-time.After(time.Duration(delay.Load())) })
	shop := spawn(t, "--database", database)
	shop.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10000000,"strategy":"conditional"}`)
	c := &crowd{client: customers(t), url: func() string { return shop.url }, answers: make(map[int]int)}
	rate := func(adapts, d time.Duration) float64 {
		c.regardless(t.Context(), 400, adapts)
		c.reset()
		return c.regardless(t.Context(), 400, d)
	}
	c.steadily(t.Context(), 1, time.Second)
	quick := rate(time.Second, 10*time.Second)
	delay.Store(int64(100 * time.Millisecond))
	changed := rate(30*time.Second, 20*time.Second)
	shop.kill()
	shop = spawn(t, "--database", database)
	c.steadily(t.Context(), 1, 3*time.Second)
	always := rate(10*time.Second, 20*time.Second)
	t.Logf("%.0f orders/s, and %.0f/s when a round trip takes 100 ms longer; %.0f/s at an instance that has begun then", quick, changed, always)
	if changed < always/2 || always < 10 {
		t.Errorf("%.0f orders/s are placed after the change, want at least half of %.0f/s", changed, always)
	}
}

// Far more baskets come in than an instance can place, of SKUs with nine strategies, one after the other for want of leases. The first burst
// does not fill the permits, so no accepted order waits long.
func TestAcceptedBasketsAreQuickUnderOverload(t *testing.T) {
	testbedtest.FullSize(t)
	alone(t)
	z, redis := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{}), ownRedis(t)
	shop := spawn(t, "--database", distant(t, testbedtest.Database(t), 25*time.Millisecond), "--redis", redis, "--zookeeper", z.Addr(), "--etcd", testbedtest.Etcd(t))
	skus := []string{"naive", "conditional", "optimistic", "for-update", "lua", "redis", "redis-cohort", "zookeeper", "etcd"}
	for _, sku := range skus {
		shop.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, fmt.Sprintf(`{"on_hand":10000000,"strategy":%q}`, sku))
	}
	client := customers(t)
	load := func(perSecond int, lasts time.Duration) (accepted []time.Duration, refused int) {
		var all sync.WaitGroup
		var mu sync.Mutex
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for n := range perSecond * int(lasts.Seconds()) {
			<-tick.C
			all.Go(func() {
				some := rand.Perm(len(skus))[:2+rand.N(3)]
				items := make([]string, len(some))
				for i, s := range some {
					items[i] = fmt.Sprintf(`{"sku":%q,"quantity":1}`, skus[s])
				}
				a := ask(t.Context(), client, "POST", shop.url+"/api/v1/orders", fmt.Sprintf(`{"customer_id":"c%d","items":[%s]}`, n, strings.Join(items, ",")))
				mu.Lock()
				defer mu.Unlock()
				if a.status == http.StatusCreated {
					accepted = append(accepted, a.took)
				} else {
					refused++
				}
			})
		}
		all.Wait()
		return accepted, refused
	}
	unloaded, _ := load(1, 30*time.Second)
	load(50, 10*time.Second) // a burst of 32 may wait longer
	accepted, refused := load(50, 60*time.Second)
	ratio := float64(quantile(accepted, 99)) / float64(quantile(unloaded, 99))
	t.Logf("unloaded p50 %v, p99 %v; at 50/s p50 %v, p90 %v, p99 %v (%.1f times); %d placed, %d refused", quantile(unloaded, 50), quantile(unloaded, 99),
		quantile(accepted, 50), quantile(accepted, 90), quantile(accepted, 99), ratio, len(accepted), refused)
	if ratio > 6 || refused < len(accepted) || len(accepted) < 300 {
		t.Error("want a p99 of six times the unloaded at most, and five orders a second")
	}
}
