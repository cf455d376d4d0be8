package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// placeOne tries to place an order of one unit of each SKU.
func placeOne(ctx context.Context, s *sqlstore.Store, skus ...string) (*order.Request, error) {
	r := request(1, skus...)
	return r, s.Commit(ctx, &order.Batch{Claims: conditionally(skus...), Requests: []*order.Request{r}})
}

// startAll starts all functions at once. Their errors are complete when over is closed.
func startAll(functions ...func() error) (errs []error, over <-chan struct{}) {
	var crowd sync.WaitGroup
	errs = make([]error, len(functions))
	for i, f := range functions {
		crowd.Go(func() { errs[i] = f() })
	}
	done := make(chan struct{})
	go func() {
		crowd.Wait()
		close(done)
	}()
	return errs, done
}

// mostWaiting returns how many sessions at most waited for a row at the same time, until over is closed.
func mostWaiting(t *testing.T, db *sql.DB, over <-chan struct{}) (most int) {
	t.Helper()
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-time.After(150 * time.Millisecond): // InnoDB refreshes its table of locks after 100 ms without a read
		}
		var n int
		if err := db.QueryRowContext(t.Context(), lockWaits).Scan(&n); err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	return most
}

// refusesAtOnce fails the test unless orders of the locked SKU bad are refused quickly, and those of good are placed.
func refusesAtOnce(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	began := time.Now()
	for range 100 { // each would take two seconds if it waited
		if _, err := placeOne(t.Context(), s, "bad"); !errors.Is(err, stock.ErrRowLocked) {
			t.Fatalf("%v, want ErrRowLocked", err)
		}
		if _, err := placeOne(t.Context(), s, "good"); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	t.Logf("100 refusals and 100 orders of another SKU took %v", took)
	if took > time.Minute {
		t.Errorf("100 refusals took %v", took)
	}
}

// A session keeps the row of one SKU locked. Orders, payments and restocks of it wait on a quarter of the connections.
// Once they have waited in vain, others are refused at once without a connection. When the row is free the SKU is sold
// again.
func TestLockedRowUsesFewConnections(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	db, s := rawDB(t, url), open(t, url, "one")
	for _, sku := range []string{"bad", "good"} {
		create(t, s, sku, "conditional", 1000)
	}
	var unpaid []string
	for range 20 {
		r, err := placeOne(t.Context(), s, "bad")
		if err != nil {
			t.Fatal(err)
		}
		unpaid = append(unpaid, r.Order.ID)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "UPDATE skus SET version = version + 1 WHERE sku = 'bad'"); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var crowd []func() error
	for _, id := range unpaid {
		crowd = append(crowd,
			func() error { _, err := placeOne(ctx, s, "bad"); return err },
			func() error { _, err := placeOne(ctx, s, "bad", "good"); return err },
			func() error { _, _, err := s.Settle(ctx, order.Target{ID: id}, order.Confirmed, "p"); return err },
			func() error { _, err := s.Restock(ctx, "bad", 1, nil); return err },
		)
	}
	refused, over := startAll(crowd...)
	most := mostWaiting(t, db, over)
	t.Logf("%d sessions waited at most", most)
	if most < 2 || most > 8 {
		t.Errorf("%d sessions waited for the row at the same time, want 8 at most", most)
	}
	for _, err := range refused {
		if !errors.Is(err, stock.ErrRowLocked) {
			t.Errorf("%v, want ErrRowLocked", err)
		}
	}
	refusesAtOnce(t, s)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	until(t, time.Minute, "sold again", func() bool {
		_, err := placeOne(ctx, s, "bad")
		if err != nil && !errors.Is(err, stock.ErrRowLocked) {
			t.Fatal(err)
		}
		return err == nil
	})
	for _, sku := range []string{"bad", "good"} {
		if a := auditOf(t, s, sku); !a.OK() {
			t.Errorf("%+v %q", a, a.Broken())
		}
	}
}

// placeFor tries to place an order of one unit of the SKU a for a customer.
func placeFor(ctx context.Context, s *sqlstore.Store, customer string, ttl time.Duration) (*order.Request, error) {
	r := request(1, "a")
	r.Order.CustomerID, r.MaxOpen, r.TTL = customer, 1000, ttl
	err := s.Commit(ctx, &order.Batch{Claims: conditionally("a"), Requests: []*order.Request{r}})
	return r, errors.Join(err, r.Err)
}

// sellToOther places, pays and reads orders of the customer other, two at least, for a second. It returns how many.
func sellToOther(ctx context.Context, s *sqlstore.Store) (n int, err error) {
	for began := time.Now(); n < 2 || time.Since(began) < time.Second; n++ {
		r, err := placeFor(ctx, s, "other", time.Hour)
		if err == nil {
			err = settle(ctx, s, r.Order.ID, order.Confirmed, "p")
		}
		if err == nil {
			_, err = s.Order(ctx, r.Order.ID, "")
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// A session has the rows of forty orders and of forty customers. A waiter for them keeps no connection. With four
// connections the orders of other customers are placed, paid and read as before.
func TestHeldRowKeepsNoConnection(t *testing.T) {
	t.Parallel()
	raw := new(handle)
	url := testbedtest.Database(t)
	open(t, url, "one", raw)
	s := opened(t, sqlstore.Config{URL: url, Instance: "two", Connections: 4})
	create(t, s, "a", "conditional", 1000)
	var held []string
	for i := range 40 {
		ttl := time.Hour
		if i%2 == 1 {
			ttl = 0 // it is late, and a read of it waits for the session
		}
		r, err := placeFor(t.Context(), s, "held", ttl)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, r.Order.ID)
	}
	release := lockRow(t, raw.db, "SELECT * FROM orders WHERE customer_id = 'held'")
	releaseCustomer := lockRow(t, raw.db, "SELECT * FROM customer_usage WHERE customer_id = 'held'")

	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	var crowd []func() error
	for i, id := range held {
		crowd = append(crowd,
			func() error { _, _, err := s.Settle(ctx, order.Target{ID: id}, order.Confirmed, "p"); return err },
			func() error { _, _, err := s.Extend(ctx, order.Target{ID: id}, time.Second, time.Hour*2); return err },
			func() error { _, err := placeFor(ctx, s, "held", time.Hour); return err },
		)
		if i%2 == 1 {
			crowd = append(crowd, func() error { _, err := s.Order(ctx, id, ""); return err })
		}
	}
	waited, over := startAll(crowd...)
	defer func() { <-over }()
	sold, n, err := make(chan struct{}), 0, error(nil)
	go func() {
		defer close(sold)
		n, err = sellToOther(t.Context(), s)
	}()
	most := mostWaiting(t, testbedtest.OpenSQL(t, url), sold)
	t.Logf("%d orders of another customer, while %d sessions at most waited for a row", n, most)
	if err != nil || most > 2 { // they may wait for the row of the SKU for a moment
		t.Errorf("%d sessions waited for a row: %v", most, err)
	}
	<-over
	for _, err := range waited {
		if !errors.Is(err, stock.ErrRowLocked) && !errors.Is(err, order.ErrCustomerBusy) {
			t.Errorf("%v, want that the row is locked", err)
		}
	}
	release()
	releaseCustomer()
	if _, err := placeFor(t.Context(), s, "held", time.Hour); err != nil {
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
		if err := s.Commit(t.Context(), &order.Batch{Claims: conditionally("a"), Requests: requests}); err != nil {
			t.Fatal(err)
		}
	}
	known := batch("row", "late")
	known[1].TTL = 0
	commit(known)
	releases := []func(){
		lockRow(t, raw.db, "SELECT * FROM customer_usage WHERE customer_id = 'row'"),
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

// The outcomes of many orders are unknown, and looking for them waits for their rows. It uses four connections, so another order is placed.
func TestLookingForOutcomesLeavesConnections(t *testing.T) {
	t.Parallel()
	raw := new(handle)
	s := open(t, testbedtest.Database(t), "one", raw)
	create(t, s, "a", "conditional", 100)
	create(t, s, "b", "conditional", 100)
	var batches []*order.Batch
	for range 12 {
		r := request(1, "a")
		b := &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}
		if err := s.Commit(t.Context(), b); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		r.Answered, r.Uncertain = false, true
		batches = append(batches, b)
	}
	release := lockRow(t, raw.db, "SELECT * FROM orders")
	var all sync.WaitGroup
	for _, b := range batches {
		all.Go(func() {
			err := s.Commit(t.Context(), b)
			for n := 0; errors.Is(err, stock.ErrRowLocked) && n < 10; n++ { // on a busy machine it may have waited for 2 s
				err = s.Commit(t.Context(), b)
			}
			if err != nil || b.Requests[0].Err != nil {
				t.Error(err, b.Requests[0].Err)
			}
		})
	}
	waiting(t, raw.db, 4)
	if _, err := placeOne(t.Context(), s, "b"); err != nil {
		t.Error(err)
	}
	waiting(t, raw.db, 4)
	release()
	all.Wait()
	balanced(t, s, "a", 12, 0)
}
