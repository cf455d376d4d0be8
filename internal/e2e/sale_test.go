package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/testbed/testbedtest"
)

// A thousand customers want ten units, up to a hundred at a time, from three instances. Ten get one,
// all others receive that it is sold out, and nobody receives anything else. Other tests wait
// meanwhile: whoever has no time left would receive that, too.
func TestAThousandBuyersOfTen(t *testing.T) {
	s := newStage(t)
	fleet := s.three(t, "--permits", "1000")
	client := customers(t)
	store := books(t, s.database)
	usual := testbedtest.Size(300, 1000) // a thousand by each strategy at full size
	for strategy, buyers := range map[string]int{"conditional": 1000, "segmented": usual, "redis": usual, "redis-cohort": usual, "lua": usual} {
		hands := 100
		if strategy == "redis" { // one order at a time: so many wait for as long as the others take together
			hands = testbedtest.Size(30, 100)
		}
		fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+strategy, `{"on_hand":10,"strategy":"`+strategy+`"}`)
		began := time.Now()
		var queue atomic.Int64
		answers := make([]answer, buyers)
		together(hands, func(int) (last answer) {
			for i := int(queue.Add(1)) - 1; i < buyers; i = int(queue.Add(1)) - 1 {
				answers[i] = served(t.Context(), client, fleet[i%3].url, strategy)
			}
			return last
		})
		got := tally(answers)
		if want := (map[int]int{http.StatusCreated: 10, http.StatusConflict: buyers - 10}); !maps.Equal(got, want) {
			t.Errorf("%s: answers by status: %s", strategy, cmp.Diff(want, got))
			for _, a := range answers {
				if a.status != http.StatusCreated && a.status != http.StatusConflict {
					t.Log(a)
					break
				}
			}
		}
		t.Logf("%s: %d buyers are answered after %v", strategy, buyers, time.Since(began).Round(time.Millisecond))
		audits, err := store.Audit(t.Context(), strategy)
		if err != nil {
			t.Fatal(err)
		}
		if a := audits[0]; !a.OK() || a.Reserved != 10 {
			t.Errorf("%s: the books: %v, %d reserved", strategy, a.Broken(), a.Reserved)
		}
	}
}

// Baskets name the same SKUs, guarded in different ways, in every order, and want more than there is. No two wait for
// each other, each gets all it wants or nothing, and the ledger balances while customers pay and cancel. Other tests
// wait meanwhile.
func TestBasketsInOppositeOrders(t *testing.T) {
	s := newStage(t)
	fleet := s.three(t, "--permits", "1000")
	client := customers(t)
	skus := map[string]string{}
	for i, strategy := range []string{"conditional", "segmented", "optimistic", "for-update", "redis", "redis-cohort", "lua"} {
		sku := fmt.Sprint("s", i)
		skus[sku] = strategy
		fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, fmt.Sprintf(`{"on_hand":%d,"strategy":%q}`, testbedtest.Size(45, 300), strategy))
	}
	baskets := testbedtest.Size(150, 1000)
	hands := testbedtest.Size(10, 25) // who waits for the others may wait for ten seconds
	began := time.Now()
	answers := together(hands, func(hand int) (worst answer) {
		for i := hand; i < baskets; i += hands {
			url := fleet[rand.N(3)].url
			basket := randomBasket(len(skus))
			a := insist(func() answer { return ask(t.Context(), client, http.MethodPost, url+"/api/v1/orders", basket) })
			switch {
			case a.err != nil || a.status != http.StatusCreated && a.status != http.StatusConflict:
				return a
			case a.status == http.StatusConflict:
				continue
			}
			end, body := []string{"cancel", "pay", ""}[i%3], ""
			if end == "pay" {
				body = `{"payment_id":"p1"}`
			}
			if end == "" {
				continue
			}
			last := insist(func() answer {
				return ask(t.Context(), client, http.MethodPost, url+a.header.Get("Location")+"/"+end, body)
			})
			if last.err != nil || last.status != http.StatusOK {
				return last
			}
		}
		return worst
	})
	for _, a := range answers {
		if a.err != nil || a.status != 0 {
			t.Error(a)
		}
	}
	t.Logf("%d baskets after %v", baskets, time.Since(began).Round(time.Millisecond))
	store := books(t, s.database)
	audits, err := store.Audit(t.Context(), "")
	if err != nil || len(audits) != len(skus) {
		t.Fatalf("%d audits, %v", len(audits), err)
	}
	var sold int64
	for _, a := range audits {
		if sold += a.Reserved; !a.OK() {
			t.Errorf("the books of %s, %s: %v", a.SKU, skus[a.SKU], a.Broken())
		}
	}
	if sold == 0 {
		t.Error("no basket was sold")
	}
}

// randomBasket asks for one to three units of two to four SKUs of so many, in any order, and
// sometimes twice for the same one.
func randomBasket(skus int) string {
	order, lines := rand.Perm(skus), ""
	for i := range 2 + rand.N(3) {
		lines += fmt.Sprintf(`{"sku":"s%d","quantity":%d},`, order[i], 1+rand.N(3))
	}
	return fmt.Sprintf(`{"customer_id":"c%d","items":[%s{"sku":"s%d","quantity":1}]}`, rand.N(20), lines, rand.N(skus))
}
