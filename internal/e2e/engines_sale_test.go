package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/demo"
)

// few is how many units there are of the SKUs that are sold out in a midSale.
const few = 60

// midSale is a sale in which something goes wrong. Each of some strategies has a SKU of its name with plenty of units, and one
// with few. Each order has a customer and a key of its own. A customer who is refused for now comes again, to the next instance.
// Some send an order twice at once. Of the SKU limited each customer may have one unit, and asks for two at once.
type midSale struct {
	fleet  []*instance
	skus   []string // with plenty of units
	client *http.Client
	stalls *stallDetector
	stop   func()
	lossy  bool          // an acknowledged order may be gone
	shard  string        // of the SKUs; default: none
	waits  time.Duration // for how long a unit is held after its release has been recorded: the COMMIT waits for replicas

	mu      sync.Mutex
	placed  map[string][]time.Time // by SKU and by instance
	orders  map[string]receipt     // by id
	refused map[string]int         // by type of problem and by instance
	slowest time.Duration
	soldOut map[string]bool // SKUs with few units
	rests   map[string]bool // of these, until a scramble
	odd     string
}

// receipt is what a customer knows of an acknowledged order.
type receipt struct {
	customer string
	at       time.Time // of the latest acknowledgement
	paid     bool
}

// newMidSale begins a sale with two buyers of each SKU at each instance.
func newMidSale(t *testing.T, fleet []*instance, skus ...string) *midSale {
	t.Helper()
	return newMidSaleIn(t, "", fleet, skus...)
}

// newMidSaleIn is newMidSale of SKUs in a shard.
func newMidSaleIn(t *testing.T, shard string, fleet []*instance, skus ...string) *midSale {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &midSale{
		fleet: fleet, skus: skus, shard: shard, client: customers(t), stalls: detectStalls(t),
		placed: make(map[string][]time.Time), orders: make(map[string]receipt), refused: make(map[string]int), soldOut: make(map[string]bool), rests: make(map[string]bool),
	}
	create := func(sku, strategy string, units int, more string) {
		fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+inShard(shard, sku), fmt.Sprintf(`{"on_hand":%d,"strategy":%q%s}`, units, strategy, more))
	}
	create("limited", skus[0], 1_000_000, `,"purchase_limit":1`)
	for _, sku := range skus {
		create(sku, sku, 1_000_000, "")
		create("few-"+sku, sku, few, "")
	}
	var buyers sync.WaitGroup
	for i := range 2 * len(fleet) {
		for _, sku := range skus {
			buyers.Go(func() { s.buyer(ctx, i, sku) })
		}
	}
	s.stop = func() {
		cancel()
		buyers.Wait()
	}
	t.Cleanup(s.stop)
	return s
}

// buyer buys until ctx ends. What has begun is brought to its end.
func (s *midSale) buyer(ctx context.Context, i int, sku string) {
	for n := 0; ctx.Err() == nil; n++ {
		ctx, customer := context.WithoutCancel(ctx), fmt.Sprint(sku, "-", i, "-", n)
		ids := make([]string, 1+max(0, n%5-3)) // now and then the same request twice
		together(len(ids), func(j int) answer {
			ids[j] = s.buy(ctx, i+j, sku, customer, customer)
			return answer{}
		})
		if id := ids[0]; id != "" {
			s.read(ctx, i+1, id)
			if n%4 == 0 {
				s.pay(ctx, i+2, id)
			}
		}
		if few := "few-" + sku; !s.isResting(few) {
			s.buy(ctx, i, few, few+customer, few+customer)
		}
		if n%8 == 0 {
			together(2, func(j int) answer {
				s.buy(ctx, i+j, "limited", "one-"+customer, fmt.Sprint(customer, j))
				return answer{}
			})
		}
	}
}

// buy places an order and returns its id, or nothing if it is refused for good.
func (s *midSale) buy(ctx context.Context, i int, sku, customer, key string) (id string) {
	body := fmt.Sprintf(`{"customer_id":%q,"items":[{"sku":%q,"quantity":1}]}`, customer, inShard(s.shard, sku))
	a, at := s.insist(ctx, i, http.MethodPost, "/api/v1/orders", body, "Idempotency-Key", key)
	found := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(a.body)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.status == http.StatusCreated && found != nil:
		id = found[1]
		now := time.Now()
		s.placed[sku] = append(s.placed[sku], now)
		s.placed[s.fleet[at].url] = append(s.placed[s.fleet[at].url], now)
		s.orders[id] = receipt{customer: customer, at: now}
	case strings.Contains(a.body, "/out-of-stock") && strings.HasPrefix(sku, "few-"):
		s.soldOut[sku], s.rests[sku] = true, true
	case strings.Contains(a.body, "/purchase-limit") && sku == "limited":
	default:
		s.odd = a.String()
	}
	return id
}

// read reads an order that another instance has acknowledged.
func (s *midSale) read(ctx context.Context, i int, id string) {
	a, _ := s.insist(ctx, i, http.MethodGet, "/api/v1/orders/"+id, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.status != http.StatusOK && !s.gone(a) {
		s.odd = "an order that another instance has acknowledged: " + a.String()
	}
}

// gone reports whether an answer says that there is no such order, where orders may be lost. It requires mu.
func (s *midSale) gone(a answer) bool { return s.lossy && a.status == http.StatusNotFound }

// pay pays for an order, unless it has expired.
func (s *midSale) pay(ctx context.Context, i int, id string) {
	a, _ := s.insist(ctx, i, http.MethodPost, "/api/v1/orders/"+id+"/pay", fmt.Sprintf(`{"payment_id":%q}`, id), "Idempotency-Key", "pay")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case a.status == http.StatusOK:
		r := s.orders[id]
		r.paid, r.at = true, time.Now()
		s.orders[id] = r
	case !strings.Contains(a.body, `"EXPIRED"`) && !s.gone(a):
		s.odd = a.String()
	}
}

// insist sends a request to one instance after the other while it is refused for now or its outcome is unknown. It returns the last
// answer, and which instance gave it.
func (s *midSale) insist(ctx context.Context, i int, method, path, body string, header ...string) (a answer, at int) {
	for end := time.Now().Add(time.Minute); ; i++ {
		at = i % len(s.fleet)
		a = ask(ctx, s.client, method, s.fleet[at].url+path, body, header...)
		again := a.err == nil && (later(a.status, a.body) || strings.Contains(a.body, "/outcome-unknown"))
		s.mu.Lock()
		s.slowest = max(s.slowest, a.took)
		if again {
			_, kind, _ := strings.Cut(a.body, "/problems/")
			kind, _, _ = strings.Cut(kind, `"`)
			s.refused[kind+" at "+s.fleet[at].url]++
		}
		s.mu.Unlock()
		if !again || time.Now().After(end) {
			return a, at
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (s *midSale) isResting(sku string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rests[sku]
}

// scramble has all buyers buy of the few units again, which have come back from orders that were not paid.
func (s *midSale) scramble() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.rests)
}

// buysAllOfFew buys all units of each SKU with few at once, which it can when all have come back.
func (s *midSale) buysAllOfFew(t *testing.T) {
	t.Helper()
	for _, sku := range s.skus {
		body := fmt.Sprintf(`{"customer_id":"all","items":[{"sku":%q,"quantity":%d}]}`, inShard(s.shard, "few-"+sku), few)
		testbedtest.Eventually(t, "all units of few-"+sku+" are bought", func() bool {
			return ask(t.Context(), s.client, http.MethodPost, s.fleet[0].url+"/api/v1/orders", body).status == http.StatusCreated
		})
	}
}

// demonstrates runs shop demo at three new instances, whose unpaid orders do not expire before its end. The baseline has to oversell, and
// no other strategy may.
func (s *midSale) demonstrates(t *testing.T, all *servers) {
	t.Helper()
	for _, in := range s.fleet {
		in.stop()
	}
	for _, in := range s.fleet {
		in.stopped(t)
	}
	fleet := openShop(t, all, "--order-ttl", "1h")
	var n atomic.Int64
	front := httptest.NewServer(&httputil.ReverseProxy{Transport: s.client.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(fleet[n.Add(1)%int64(len(fleet))].url, "http://")
	}})
	defer front.Close()
	code, r := play(t, "--url", front.URL, "--database", all.databases[0], "--strategies", strings.Join(append([]string{"naive"}, s.skus...), ","), "--stock", "20")
	if code != 0 || r.Verdict != demo.Proved || len(r.Variants) != 1+len(s.skus) || r.Instances != len(fleet) {
		t.Errorf("exit code %d: %+v", code, r)
	}
}
