package e2e_test

import (
	"testing"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The server is killed in the middle of a sale and starts again. Each acknowledged order is a row, no request is two, nothing is
// oversold, limits hold, and unpaid orders expire once.
func TestSaleOnPostgreSQL(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartPostgres(t, testbed.PostgresConfig{})
	url := server.URL()
	s := newMidSale(t, openShop(t, &servers{databases: [3]string{url, url, url}}, "--order-ttl", "10s"), exact...)
	s.placesAll(t)
	must(t, server.Kill())
	must(t, server.Restart(t.Context()))
	s.placesAll(t)
	s.stop()
	awaitExpiry(t, url)
	if lost := s.holds(t, url, url); len(lost) > 0 {
		t.Errorf("%d acknowledged orders are lost, such as %v", len(lost), lost[0])
	}
}
