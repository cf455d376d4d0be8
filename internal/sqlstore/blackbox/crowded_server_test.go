package blackbox_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Others use up all connections of a server. Orders are placed and locks acquired with the connections that an instance
// has, although it used no lock before.
func TestLocksWorkAtACrowdedServer(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"max_connections": "40"}})
	execAt(t, server, "CREATE USER seller", "GRANT ALL ON shop.* TO seller") // the server keeps one connection for root
	address := "mysql://seller@" + server.Addr() + "/" + testbed.DefaultDatabase
	s := open(t, address, "one")
	create(t, s, "a", "conditional", 10)
	locks, err := s.Locks(t.Context(), sqllock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, locks.Close)
	others := rawDB(t, address)
	for err == nil {
		var conn *sql.Conn
		if conn, err = others.Conn(t.Context()); err == nil {
			t.Cleanup(func() { conn.Close() })
		}
	}
	if !sqldb.Is(err, sqldb.Starting) {
		t.Fatal(err)
	}
	place(t, s, time.Hour, "a")
	acquire := func(key string) func() error {
		return func() error {
			lease, err := locks.Acquire(t.Context(), key)
			if err != nil {
				return err
			}
			return lease.Release(t.Context())
		}
	}
	if err := acquire("alone")(); err != nil {
		t.Error("alone:", err)
	}
	errs, over := startAll(acquire("a"), acquire("b"), acquire("c"), acquire("d"))
	<-over
	for i, err := range errs {
		if err != nil {
			t.Error(fmt.Sprintf("%d of four at once:", i), err)
		}
	}
}
