package sqlstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// A session has the rows of forty orders and of forty customers. Whoever waits for them keeps no connection: with four connections the
// orders of other customers are placed, paid and read as before.
func TestHeldRowKeepsNoConnection(t *testing.T) {
	t.Parallel()
	raw := new(handle)
	url := testbedtest.Database(t)
	open(t, url, "one", raw)
	s := opened(t, sqlstore.Config{URL: url, Instance: "two", Connections: 4})
	create(t, s, "a", "conditional", 1000)
	place := func(ctx context.Context, customer string, ttl time.Duration) (*order.Request, error) {
		r := request(1, "a")
		r.Order.CustomerID, r.MaxOpen, r.TTL = customer, 1000, ttl
		err := s.Commit(ctx, claim("a", stock.Conditional, dlock.Fence{}), []*order.Request{r})
		return r, errors.Join(err, r.Err)
	}
	var held []string
	for i := range 40 {
		ttl := time.Hour
		if i%2 == 1 {
			ttl = 0 // it is late, and a read of it waits for the session
		}
		r, err := place(t.Context(), "held", ttl)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, r.Order.ID)
	}
	release := lockRow(t, raw.db, "SELECT * FROM orders WHERE customer_id = 'held'")
	releaseCustomer := lockRow(t, raw.db, "SELECT * FROM customers WHERE customer_id = 'held'")

	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	var crowd sync.WaitGroup
	defer crowd.Wait()
	waited := make(chan error, 4*len(held))
	for i, id := range held {
		crowd.Go(func() {
			_, _, err := s.Settle(ctx, order.Target{ID: id}, order.Confirmed, "p")
			waited <- err
		})
		crowd.Go(func() {
			_, _, err := s.Extend(ctx, order.Target{ID: id}, time.Second, time.Hour*2)
			waited <- err
		})
		crowd.Go(func() {
			_, err := place(ctx, "held", time.Hour)
			waited <- err
		})
		if i%2 == 1 {
			crowd.Go(func() {
				_, err := s.Order(ctx, id, "")
				waited <- err
			})
		}
	}
	began, n := time.Now(), 0
	for ; time.Since(began) < time.Second; n++ {
		r, err := place(t.Context(), "other", time.Hour)
		if err == nil {
			err = settle(t.Context(), s, r.Order.ID, order.Confirmed, "p")
		}
		if err == nil {
			_, err = s.Order(t.Context(), r.Order.ID, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	t.Logf("%d orders of another customer in %v", n, took)
	if n < 2 || took > 3*time.Second { // an order that waits for a connection has it after two seconds
		t.Errorf("%d orders of another customer in %v", n, took)
	}
	crowd.Wait()
	close(waited)
	for err := range waited {
		if !errors.Is(err, stock.ErrRowLocked) && !errors.Is(err, order.ErrCustomerBusy) {
			t.Errorf("%v, want that the row is locked", err)
		}
	}
	release()
	releaseCustomer()
	if _, err := place(t.Context(), "held", time.Hour); err != nil {
		t.Error(err)
	}
	if err := settle(t.Context(), s, held[0], order.Confirmed, "p"); err != nil {
		t.Error(err)
	}
}

// Another transaction has the row of one customer, and the late order of a second one. A batch with orders of these two and a third customer
// places that of the third, and refuses the others for now.
func TestBatchWaitsForNoCustomer(t *testing.T) {
	t.Parallel()
	raw := new(handle)
	s := open(t, testbedtest.Database(t), "one", raw)
	create(t, s, "a", "conditional", 1000)
	batch := func(customers ...string) (requests []*order.Request) {
		for _, c := range customers {
			r := request(1, "a")
			r.Order.CustomerID, r.MaxOpen = c, 1000
			requests = append(requests, r)
		}
		return requests
	}
	commit := func(requests []*order.Request) {
		t.Helper()
		if err := s.Commit(t.Context(), claim("a", stock.Conditional, dlock.Fence{}), requests); err != nil {
			t.Fatal(err)
		}
	}
	known := batch("row", "late")
	known[1].TTL = 0
	commit(known)
	releases := []func(){
		lockRow(t, raw.db, "SELECT * FROM customers WHERE customer_id = 'row'"),
		lockRow(t, raw.db, "SELECT * FROM orders WHERE id = ?", known[1].Order.ID),
	}
	requests := batch("row", "late", "new")
	commit(requests)
	for i, r := range requests {
		if errors.Is(r.Err, order.ErrCustomerBusy) != (i < 2) || i == 2 && r.Err != nil {
			t.Errorf("%s: %v", r.Order.CustomerID, r.Err)
		}
	}
	for _, release := range releases {
		release()
	}
	requests = batch("row", "late")
	commit(requests)
	for _, r := range requests {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Order.CustomerID, r.Err)
		}
	}
	if a := auditOf(t, s, "a"); !a.OK() || a.Open != 5 {
		t.Errorf("%+v %q", a, a.Broken())
	}
}
