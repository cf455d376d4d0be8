package testbedtest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
)

var sharedPostgres = sync.OnceValues(func() (*testbed.Postgres, error) {
	return testbed.StartPostgres(context.Background(), testbed.PostgresConfig{Vars: map[string]string{"fsync": "off", "full_page_writes": "off"}})
})

// Postgres is [Database] on PostgreSQL. SHOP_TEST_POSTGRES may name a server.
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv("SHOP_TEST_POSTGRES")
	if server == "" {
		shared, err := sharedPostgres()
		require(t, err)
		server = shared.URL()
	}
	db, name := OpenSQL(t, server), "shop_test_"+strings.ToLower(rand.Text())
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("database for a test: %v", err)
	}
	closeAtEnd(t, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), dropTimeout)
		defer cancel()
		_, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		return errors.Join(err, db.Close())
	})
	return server[:strings.LastIndex(server, "/")+1] + name
}

// StartPostgres starts a PostgreSQL server for this test alone.
func StartPostgres(t testing.TB, cfg testbed.PostgresConfig) *testbed.Postgres {
	t.Helper()
	server, err := testbed.StartPostgres(t.Context(), cfg)
	return started(t, server, err)
}

// StartPatroni starts three PostgreSQL servers with agents of Patroni for this test alone.
func StartPatroni(t testing.TB, ttl time.Duration) *testbed.Patroni {
	t.Helper()
	cluster, err := testbed.StartPatroni(t.Context(), ttl)
	return started(t, cluster, err)
}
