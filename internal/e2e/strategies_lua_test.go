package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// luaSale is customers who buy, and then pay, cancel, or let their orders expire.
type luaSale struct {
	faultySale

	pays   atomic.Int64 // percent of them; of the others half cancel
	placed atomic.Int64
	paid   atomic.Int64
}

// buy buys a unit if there is one, and decides what becomes of it.
func (s *luaSale) buy(ctx context.Context, key string) error {
	a := s.insist(ctx, key, "/api/v1/orders", oneUnit)
	if a.err == nil && a.status == http.StatusConflict {
		<-time.After(10 * time.Millisecond)
		return nil
	}
	var o struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &o); a.err != nil || a.status != http.StatusCreated || err != nil {
		return fmt.Errorf("order %s: %v", key, a)
	}
	s.placed.Add(1)
	end, body := "cancel", ""
	switch pays := rand.N(int64(100)) < s.pays.Load(); {
	case pays:
		end, body = "pay", `{"payment_id":"p1"}`
	case rand.N(2) == 0:
		return nil // until it expires
	}
	a = s.insist(ctx, key, "/api/v1/orders/"+o.ID+"/"+end, body)
	switch {
	case a.err == nil && a.status == http.StatusConflict: // it has expired
	case a.err != nil || a.status != http.StatusOK:
		return fmt.Errorf("%s %s: %v", end, key, a)
	case end == "pay":
		s.paid.Add(1)
	}
	return nil
}

// begin starts 16 buyers, who buy until ctx ends. When all of them pay, a few are left.
func (s *luaSale) begin(ctx context.Context, t *testing.T) *sync.WaitGroup {
	t.Helper()
	last := testbedtest.Size(4, 16) // buyers in the end: few have paid before their orders expire, also where all is slow
	buyers := new(sync.WaitGroup)
	for b := range 16 {
		buyers.Go(func() {
			for n := 0; ctx.Err() == nil && (b < last || s.pays.Load() == 0); n++ {
				if err := s.buy(t.Context(), fmt.Sprint("b", b, "-", n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return buyers
}

// Three instances sell by lua through faults, while customers buy, pay, cancel and forget to pay. An instance is
// killed after it has taken units. Redis is emptied, and rolled back to more and to fewer units. Replies to COMMIT
// are lost. In the end every unit is sold, and paid for once.
func TestLuaThroughFaults(t *testing.T) {
	testbedtest.Measured(t)
	s := newStage(t)
	all, proxy := threeBehindProxy(t, s, "--order-ttl", "3s")
	sale := &luaSale{faultySale: faultySale{client: customers(t)}}
	for _, r := range all {
		sale.urls = append(sale.urls, r.url)
	}
	units := int64(testbedtest.Size(120, 20_000))
	all[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", fmt.Sprintf(`{"on_hand":%d,"strategy":"lua"}`, units))
	rdb, err := redisclient.New(s.redis)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	buyers := sale.begin(ctx, t)
	sells := func(what string) {
		t.Helper()
		before := sale.placed.Load()
		testbedtest.Eventually(t, "orders after "+what, func() bool { return sale.placed.Load() > before+20 }) // more than were at work before
	}
	sells("the beginning")
	for n := range 3 { // MariaDB has committed, and the instance does not receive it
		proxy.DropReply("\x03COMMIT")
		testbedtest.Eventually(t, "a lost reply", func() bool { return proxy.Dropped() > n })
		sells("a lost reply")
	}
	var older map[string]string
	surely(t, func() (err error) {
		older, err = rdb.HGetAll(ctx, luaLevel).Result()
		return err
	})
	if older["available"] == "" {
		t.Fatal(older)
	}
	killTaker(t, rdb, proxy, &sale.faultySale, all[2])
	sale.forget(all[2].url)
	sells("an instance was killed with units in its hands")
	for what, damage := range map[string]func() error{
		"Redis was emptied":               func() error { return rdb.FlushAll(ctx).Err() },
		"Redis was rolled back":           func() error { return rdb.HSet(ctx, luaLevel, older).Err() },
		"Redis was rolled back, to fewer": func() error { return rdb.HSet(ctx, luaLevel, "version", 1, "available", 0).Err() },
		"Redis got another shop's data":   func() error { return rdb.HSet(ctx, luaLevel, "version", 1<<50, "available", 0).Err() },
	} {
		surely(t, damage)
		sells(what)
	}

	sale.pays.Store(100)
	testbedtest.Eventually(t, "sold out", func() bool { return sale.paid.Load() >= units })
	stop()
	buyers.Wait()
	if a := audited(t, books(t, s.database), "a"); a.Sold != units || sale.paid.Load() != units {
		t.Errorf("customers have paid for %d of %d units, the books say %d: %q", sale.paid.Load(), units, a.Sold, a.Broken())
	}
	t.Logf("%d orders for %d units", sale.placed.Load(), units)
	all[0].want(t, http.StatusConflict, "POST", "/api/v1/orders", oneUnit)
	all[0].want(t, http.StatusOK, "POST", "/api/v1/skus/a/restock", `{"quantity":1}`)
	all[1].want(t, http.StatusCreated, "POST", "/api/v1/orders", oneUnit)
	all[0].want(t, http.StatusConflict, "POST", "/api/v1/orders", oneUnit)
}

// luaLevel is the key of what Redis knows of the SKU a.
const luaLevel = "shop:units:{a}"

// killTaker kills an instance that cannot continue to its transaction, once it has taken units. For that
// it gets an order without a key, as the keys are looked for in the database where some were repeated.
func killTaker(t *testing.T, rdb redis.UniversalClient, proxy *testbed.Proxy, sale *faultySale, s *instance) {
	t.Helper()
	proxy.BlackHole()
	ctx, stop := context.WithCancel(t.Context())
	var keyless sync.WaitGroup
	defer keyless.Wait()
	defer stop()
	keyless.Go(func() {
		for ctx.Err() == nil {
			ask(ctx, sale.client, http.MethodPost, s.url+"/api/v1/orders", oneUnit)
		}
	})
	testbedtest.Eventually(t, "units that stay taken", func() bool {
		before := rdb.HGetAll(t.Context(), luaLevel+":taken").Val()
		<-time.After(300 * time.Millisecond)
		for id := range rdb.HGetAll(t.Context(), luaLevel+":taken").Val() {
			if before[id] != "" {
				return true
			}
		}
		return false
	})
	s.kill()
	proxy.Refuse() // as the end of a process does, it ends the sessions
}
