package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/demo"
)

// few is how many units there are of the SKUs that are sold out in a midSale.
const few = 20

// fewOf is the SKU with few units of a strategy, in a round of a sale.
func fewOf(round int, strategy string) string { return fmt.Sprint("few-", round, "-", strategy) }

// midSale is a sale in which something goes wrong. Each of some strategies has a SKU of its name with plenty of units, and one
// with few in each round. Each order has a customer and a key of its own. A customer who is refused for now comes again, to the next
// instance. Some send an order twice at once. Of the SKU limited each customer may have one unit, and asks for two at once.
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
	round   int             // of the SKUs with few units
	soldOut map[string]bool // of these, all rounds
	odd     string
}

// receipt is what a customer knows of an acknowledged order.
type receipt struct {
	customer, sku string
	at            time.Time // of the latest acknowledgement
	paid          bool
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
		placed: make(map[string][]time.Time), orders: make(map[string]receipt), refused: make(map[string]int), soldOut: make(map[string]bool), round: -1,
	}
	s.create(t, "limited", skus[0], 1_000_000, `,"purchase_limit":1`)
	for _, sku := range skus {
		s.create(t, sku, sku, 1_000_000, "")
	}
	s.scramble(t)
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

// create creates a SKU.
func (s *midSale) create(t *testing.T, sku, strategy string, units int, more string) {
	t.Helper()
	s.fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+inShard(s.shard, sku), fmt.Sprintf(`{"on_hand":%d,"strategy":%q%s}`, units, strategy, more))
}

// scramble begins a round: all buyers buy the few units of new SKUs, until they are sold out.
func (s *midSale) scramble(t *testing.T) {
	t.Helper()
	for _, sku := range s.skus {
		s.create(t, fewOf(s.round+1, sku), sku, few, "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
}

// awaitSoldOut waits until the SKUs with few units of this round are sold out.
func (s *midSale) awaitSoldOut(t *testing.T) {
	t.Helper()
	for _, sku := range s.skus {
		testbedtest.Eventually(t, "the few units are sold out: "+sku, func() bool {
			_, soldOut := s.scarce(sku)
			return soldOut
		})
	}
}

// allFew returns the SKUs with few units of all rounds.
func (s *midSale) allFew() (skus []string) {
	for round := range s.round + 1 {
		for _, strategy := range s.skus {
			skus = append(skus, fewOf(round, strategy))
		}
	}
	return skus
}

// scarce returns the SKU with few units of a strategy in this round, and whether a customer knows that it is sold out.
func (s *midSale) scarce(strategy string) (sku string, soldOut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sku = fewOf(s.round, strategy)
	return sku, s.soldOut[sku]
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
		if few, soldOut := s.scarce(sku); !soldOut {
			if id := s.buy(ctx, i, few, few+customer, few+customer); id != "" && n%4 > 0 { // so that a slow machine too sells all before they expire
				s.pay(ctx, i+1, id)
			}
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
		s.orders[id] = receipt{customer: customer, sku: sku, at: now}
	case strings.Contains(a.body, "/out-of-stock") && strings.HasPrefix(sku, "few-"):
		s.soldOut[sku] = true
	case strings.Contains(a.body, "/purchase-limit") && sku == "limited":
	default:
		s.odd = a.String()
	}
	return id
}

// read reads an order that another instance has acknowledged.
func (s *midSale) read(ctx context.Context, i int, id string) {
	a, at := s.insist(ctx, i, http.MethodGet, "/api/v1/orders/"+id, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.status != http.StatusOK && !s.gone(a) {
		s.odd = fmt.Sprintf("an order that another instance has acknowledged at %s, read at %s at instance %d: %s",
			s.orders[id].at.Format(time.TimeOnly), time.Now().Format(time.TimeOnly), at%len(s.fleet)+1, a)
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

// insist sends a request to one instance after the other while it is refused for now or its outcome is unknown, for three minutes: each
// attempt may wait for 10 s, and on a busy machine few orders of a SKU that all want are placed. It returns the last answer, and which
// instance gave it.
func (s *midSale) insist(ctx context.Context, i int, method, path, body string, header ...string) (a answer, at int) {
	for end := time.Now().Add(3 * time.Minute); ; i++ {
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

// buysAllOfFew buys all units of each SKU with few at once, but for those that are paid and not lost: it can when the others have come back.
func (s *midSale) buysAllOfFew(t *testing.T, lost []receipt) {
	t.Helper()
	for _, sku := range s.allFew() {
		left := few - countIf(slices.Collect(maps.Values(s.orders)), func(r receipt) bool { return r.sku == sku && r.paid && !slices.Contains(lost, r) })
		body := fmt.Sprintf(`{"customer_id":"all","items":[{"sku":%q,"quantity":%d}]}`, inShard(s.shard, sku), left)
		testbedtest.Eventually(t, "all units are bought: "+sku, func() bool {
			return left == 0 || ask(t.Context(), s.client, http.MethodPost, s.fleet[0].url+"/api/v1/orders", body).status == http.StatusCreated
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
