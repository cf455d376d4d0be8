package testbedtest

import (
	"testing"

	"example.com/shop/internal/platform/testbed"
)

// StartProxy starts a fault proxy in front of the server at upstream, a HOST:PORT.
func StartProxy(t testing.TB, upstream string) *testbed.Proxy {
	t.Helper()
	proxy, err := testbed.NewProxy(t.Context(), upstream)
	return started(t, proxy, err)
}
