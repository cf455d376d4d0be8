package blackbox_test

import (
	"errors"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// Units are sold, and locks taken, at a server whose settings are not those on which the statements rely.
func TestServerSettingsDoNotMatter(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{
		"autocommit": "0", "sql_mode": "ORACLE,EMPTY_STRING_IS_NULL,ANSI", "completion_type": "CHAIN", "sql_safe_updates": "1",
		"transaction_isolation": "SERIALIZABLE", "default_time_zone": "+03:00", "character_set_server": "latin1",
	}})
	one, two := open(t, server.URL(), "one"), open(t, server.URL(), "two")
	create(t, one, "a", "conditional", 10)
	for i := range 10 {
		r := request(1, "a")
		if err := errors.Join(one.Commit(t.Context(), batchOf("a", stock.Conditional, dlock.Fence{}, r)), r.Err); err != nil {
			t.Fatal(i, err)
		}
		if o, err := two.Order(t.Context(), r.Order.ID, ""); err != nil || o.ID != r.Order.ID {
			t.Fatal(i, err)
		}
	}
	if a := auditOf(t, two, "a"); !a.OK() || a.Open != 10 {
		t.Errorf("%+v %q", a, a.Broken())
	}
	locks, err := one.Locks(t.Context(), sqllock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, locks.Close)
	others, err := two.Locks(t.Context(), sqllock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, others.Close)
	for range 3 {
		lease, err := locks.TryAcquire(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := others.TryAcquire(t.Context(), "key"); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("a key that another session has: %v", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lease, err = others.TryAcquire(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
