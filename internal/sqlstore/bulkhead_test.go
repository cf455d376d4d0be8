package sqlstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// A session keeps the row of one SKU locked. Orders, payments and restocks of it wait on a quarter of the connections, and
// once they have waited in vain others are refused at once, on none. When the row is free the SKU is sold again.
func TestLockedRowUsesFewConnections(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	db, s := rawDB(t, url), open(t, url, "one")
	for _, sku := range []string{"bad", "good"} {
		create(t, s, sku, "conditional", 1000)
	}
	place := func(ctx context.Context, skus ...string) (*order.Request, error) {
		r := request(1, skus...)
		var claims []stock.Claim
		for _, sku := range skus {
			claims = append(claims, claim(sku, stock.Conditional, dlock.Fence{})...)
		}
		return r, s.Commit(ctx, claims, []*order.Request{r})
	}
	var unpaid []string
	for range 20 {
		r, err := place(t.Context(), "bad")
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
	var crowd sync.WaitGroup
	refused := make(chan error, 100)
	for i := range 20 {
		crowd.Go(func() { _, err := place(ctx, "bad"); refused <- err })
		crowd.Go(func() { _, err := place(ctx, "bad", "good"); refused <- err })
		crowd.Go(func() {
			_, _, err := s.Settle(ctx, order.Target{ID: unpaid[i]}, order.Confirmed, "p")
			refused <- err
		})
		crowd.Go(func() { _, err := s.Restock(ctx, "bad", 1, nil); refused <- err })
	}
	over := make(chan struct{})
	go func() {
		crowd.Wait()
		close(over)
	}()
	most := 0
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-time.After(150 * time.Millisecond): // InnoDB shows its locks anew after 100 ms without a look
		}
		var n int
		err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_mysql_thread_id IN "+
			"(SELECT id FROM information_schema.processlist WHERE db = DATABASE())").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	if most < 2 || most > 8+1 { // and a probe
		t.Errorf("%d sessions waited for the row at the same time, want 9 at most", most)
	}
	close(refused)
	for err := range refused {
		if !errors.Is(err, stock.ErrRowLocked) {
			t.Errorf("%v, want ErrRowLocked", err)
		}
	}
	began := time.Now()
	for range 100 { // each would take two seconds if it waited
		if _, err := place(t.Context(), "bad"); !errors.Is(err, stock.ErrRowLocked) {
			t.Fatalf("%v, want ErrRowLocked", err)
		}
		if _, err := place(t.Context(), "good"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d sessions waited at most; 100 refusals and 100 orders of another SKU took %v", most, time.Since(began))
	if took := time.Since(began); took > time.Minute {
		t.Errorf("100 refusals took %v", took)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := place(ctx, "bad")
		if err == nil {
			break
		}
		if !errors.Is(err, stock.ErrRowLocked) {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	for _, sku := range []string{"bad", "good"} {
		if a := auditOf(t, s, sku); !a.OK() {
			t.Errorf("%+v %q", a, a.Broken())
		}
	}
}
