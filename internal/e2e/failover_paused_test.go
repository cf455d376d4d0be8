package main

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// An instance is paused for longer than a request may take, while orders wait for a lease, and its
// connections to the database break meanwhile. Every answer that it gives afterwards is a
// documented one.
func TestPausedInstanceGivesDocumentedAnswers(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, u.Host)
	u.Host = proxy.Addr()
	in, client := spawn(t, "--database", u.String()), customers(t)
	in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"sql"}`)
	// Somebody else has the lease, and never releases it.
	if _, err := testbedtest.OpenSQL(t, database).ExecContext(t.Context(), `INSERT INTO leases (name, owner, fence, forced, since_at, expires_at)
		VALUES ('sku:a', 'another', 1, 0, 0, ?)`, time.Now().Add(time.Hour).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	const orders = 30
	done := make(chan []answer)
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
	<-time.After(11 * time.Second) // the deadline of an order is 10 s
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
