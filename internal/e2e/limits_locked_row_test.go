package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
)

// lockStock keeps the stock row of a SKU locked in a session that is none of the shop's, as the open
// transaction of an operator does.
func lockStock(t *testing.T, database, sku string) (release func()) {
	t.Helper()
	tx, err := testbedtest.OpenSQL(t, database).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock := sync.OnceFunc(func() { tx.Rollback() })
	t.Cleanup(unlock)
	var locked string
	if err := tx.QueryRowContext(t.Context(), "SELECT sku FROM skus WHERE sku = ? FOR UPDATE", sku).Scan(&locked); err != nil {
		t.Fatal(err)
	}
	return unlock
}

// A session keeps the stock row of one SKU locked while 80 customers buy that SKU and others pay for it. Meanwhile
// another SKU is sold, paid for and read as if nothing had happened, and the instance is ready.
func TestLockedRowLeavesOtherSKUsAlone(t *testing.T) {
	t.Parallel()
	strategies := []string{"conditional", "redis", "sql-cohort"} // no lock, one for each order, and one for a batch
	if testbedtest.Size(0, 1) == 1 {
		strategies = append(strategies, "segmented", "optimistic", "for-update", "lua")
	}
	for _, strategy := range strategies {
		t.Run(strategy, func(t *testing.T) { lockedRow(t, strategy) }) // one after the other: each is a crowd
	}
}

func lockedRow(t *testing.T, strategy string) {
	t.Helper()
	most := time.Duration(testbedtest.Size(10, 2)) * time.Second // the usual run shares the machine with other tests
	s, still, client := newStage(t), watchStillness(t), customers(t)
	shop := start(t, s.flags...)
	shop.want(t, http.StatusCreated, "PUT", "/api/v1/skus/bad", `{"on_hand":1000,"strategy":"`+strategy+`"}`)
	shop.want(t, http.StatusCreated, "PUT", "/api/v1/skus/good", `{"on_hand":1000,"strategy":"conditional"}`)
	var unpaid []string // orders of the bad SKU
	for range 40 {
		unpaid = append(unpaid, served(t.Context(), client, shop.url, "bad").header.Get("Location"))
	}
	unlock := lockStock(t, s.database, "bad")
	crowd, leave := context.WithCancel(t.Context())
	defer leave()
	var buyers sync.WaitGroup
	defer buyers.Wait()
	for i := range 80 {
		buyers.Go(func() {
			for crowd.Err() == nil {
				a := purchase(crowd, client, shop.url, "bad")
				if i < len(unpaid) {
					ask(crowd, client, "POST", shop.url+unpaid[i]+"/pay", `{"payment_id":"p"}`)
				}
				if a.status != http.StatusCreated {
					select {
					case <-time.After(100 * time.Millisecond):
					case <-crowd.Done():
					}
				}
			}
		})
	}
	quickly := func(what string, want int, f func() answer) answer {
		t.Helper()
		before := still.stood()
		a := f()
		if a.took -= still.stood() - before; a.err != nil || a.status != want || a.took > most {
			t.Errorf("%s: %v, want %d within %v", what, a, want, most)
		}
		return a
	}
	for n := range 20 {
		order := quickly(fmt.Sprint("order ", n), http.StatusCreated, func() answer { return purchase(t.Context(), client, shop.url, "good") })
		path := shop.url + order.header.Get("Location")
		if order.status == http.StatusCreated {
			quickly("payment", http.StatusOK, func() answer { return ask(t.Context(), client, "POST", path+"/pay", `{"payment_id":"p"}`) })
			quickly("read", http.StatusOK, func() answer { return ask(t.Context(), client, "GET", path, "") })
		}
		quickly("readyz", http.StatusOK, func() answer { return ask(t.Context(), client, "GET", shop.url+"/readyz", "") })
	}
	leave()
	buyers.Wait()
	unlock()
	for _, path := range unpaid {
		shop.want(t, http.StatusOK, "POST", path+"/pay", `{"payment_id":"p"}`)
	}
	if a := insist(func() answer { return purchase(t.Context(), client, shop.url, "bad") }); a.status != http.StatusCreated {
		t.Errorf("the SKU once its row is free: %v", a)
	}
	for _, sku := range []string{"good", "bad"} {
		audits, err := books(t, s.database).Audit(t.Context(), sku)
		if err = errors.Join(err); err != nil || !audits[0].OK() {
			t.Errorf("the audit of %s: %+v, %v", sku, audits, err)
		}
	}
}
