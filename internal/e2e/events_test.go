package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/events"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestEventsReachEveryInstance: what happens at one of three is seen by those who follow another one.
func TestEventsReachEveryInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t, "--order-ttl", "6s")
	stalls, client := detectStalls(t), customers(t)
	var watchers []*page
	for _, r := range fleet {
		w := newPage(t, "")
		w.follow(t, r.url)
		watchers = append(watchers, w)
	}
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"redis"}`)
	resets := func() (n int) { // who was notified that something may be missing need not receive it
		for _, w := range watchers {
			n += w.count(func() int { return len(w.resets) })
		}
		return n
	}
	paid, first := int64(0), resets()
	for round, calm := 1, false; !calm; round++ {
		before := resets()
		want := map[string]string{
			ended(t, client, fleet[0], fleet[1], "pay", `{"payment_id":"p1"}`): "CONFIRMED", ended(t, client, fleet[0], fleet[2], "cancel", ""): "CANCELLED",
			buyOne(t, client, fleet[0].url): "EXPIRED",
		}
		paid++
		calm = true
		for i, w := range watchers {
			testbedtest.Eventually(t, fmt.Sprintf("at %d all is notified, or may be missing", i), func() bool {
				all := !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(id string) bool { return w.status(id) != want[id] }) &&
					w.any(func(e events.Event) bool {
						return e.Stock != nil && e.Stock.SKU == "a" && e.Stock.OnHand == 1000-paid && e.Stock.Reserved == 0
					}) &&
					w.any(func(e events.Event) bool {
						return e.Lock != nil && e.Lock.SKU == "a" && e.Lock.Strategy == "redis" && e.Lock.Holder == "shop-1" && e.Lock.Fence > 0
					}) &&
					w.any(func(e events.Event) bool {
						return e.Timer != nil && e.Timer.Kind == "order.expire" && e.Timer.Outcomes["committed"] > 0
					})
				calm = all || resets() == before
				return all || !calm
			})
			if !calm {
				break
			}
		}
		if resets() > first && stalls.total() == 0 {
			t.Fatal("something was missed, though the machine was not paused")
		}
		if !calm && round == rounds {
			t.Fatalf("something was missed in each of %d rounds", rounds)
		}
	}
}

// rounds is how often a test tries again because listeners may have missed something.
const rounds = 5

// ended places an order at one instance, and pays or cancels it at another. On a machine that was paused the order
// may have expired, and ended places another.
func ended(t *testing.T, client *http.Client, at, r *instance, how, body string) (id string) {
	t.Helper()
	testbedtest.Eventually(t, how, func() bool {
		id = buyOne(t, client, at.url)
		a := insist(func() answer {
			return ask(t.Context(), client, http.MethodPost, r.url+"/api/v1/orders/"+id+"/"+how, body)
		})
		if a.status != http.StatusOK && !strings.Contains(a.body, "EXPIRED") {
			t.Fatal(a)
		}
		return a.status == http.StatusOK
	})
	return id
}

// TestEventsOfTheCluster: who joins, who leads, and who was killed.
func TestEventsOfTheCluster(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	client := customers(t)
	spawned := map[string]*instance{}
	for _, name := range []string{"shop-1", "shop-2"} {
		spawned[name] = spawn(t, append(s.flags, "--instance", name)...)
	}
	state, _ := knows(t, client, spawned["shop-2"].url, "two members and a leader", func(s httpapi.ClusterState) bool {
		return len(s.Members) == 2 && s.Leader != nil
	})
	dead, alive := state.Leader.Name, "shop-1"
	if dead == alive {
		alive = "shop-2"
	}
	w := newPage(t, "?types=member,leader")
	w.follow(t, spawned[alive].url)
	spawn(t, append(s.flags, "--instance", "shop-3")...)
	testbedtest.Eventually(t, "who joins is notified", func() bool {
		return w.any(func(e events.Event) bool {
			return e.Member != nil && e.Member.Name == "shop-3" && !e.Member.Left && e.Member.Address != ""
		})
	})
	spawned[dead].kill()
	testbedtest.Eventually(t, "who has gone is notified", func() bool {
		return w.any(func(e events.Event) bool { return e.Member != nil && e.Member.Name == dead && e.Member.Left })
	})
	testbedtest.Eventually(t, "who leads is notified", func() bool {
		return w.any(func(e events.Event) bool {
			return e.Leader != nil && e.Leader.Name != dead && e.Leader.Term > uint64(state.Leader.Term)
		})
	})
	if n := w.count(func() int { return len(w.resets) }); n != 1 {
		t.Errorf("resets: %q", w.resets)
	}
}
