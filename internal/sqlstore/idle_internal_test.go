package sqlstore

import (
	"testing"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// An instance that is paused within a transaction keeps no row locked for long. Connections that were idle for as long
// still work for their next user.
func TestIdleTransactionKeepsNoRows(t *testing.T) {
	t.Parallel()
	const maxIdle = 2 * time.Second // of a session in a transaction
	s, err := Open(t.Context(), Config{URL: testbedtest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.db.WithContext(t.Context()).Exec("INSERT INTO customers (customer_id) VALUES ('c')").Error; err != nil {
		t.Fatal(err)
	}
	lock := "SELECT customer_id FROM customers FOR UPDATE"
	paused := s.db.WithContext(t.Context()).Begin()
	if err := paused.Exec(lock).Error; err != nil {
		t.Fatal(err)
	}
	defer paused.Rollback()
	began := time.Now()
	for {
		err := s.db.WithContext(t.Context()).Exec(lock).Error
		if err == nil {
			break
		}
		if !sqldb.Is(err, sqldb.RowLocked) || time.Since(began) > time.Minute {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	}
	t.Logf("the row was free after %v", time.Since(began))
	for range 5 {
		for range 10 { // at once, for all connections that there are
			if _, err := s.Levels(t.Context(), "", 1); err != nil {
				t.Error(err)
			}
		}
		<-time.After(maxIdle / 4)
	}
	<-time.After(maxIdle + time.Second)
	if _, err := s.Levels(t.Context(), "", 1); err != nil {
		t.Error(err)
	}
}
