package testbedtest

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/platform/testbed"
)

// sharedRedis has no owner that could close it: its guard ends it with the process.
var sharedRedis = sync.OnceValues(func() (*testbed.Redis, error) {
	return testbed.StartRedis(context.Background(), testbed.RedisConfig{})
})

// Redis returns the URL (redis://HOST:PORT/N) of a Redis server that other tests use at the same time. Use keys of
// your own, and never flush it.
func Redis(t testing.TB) string {
	t.Helper()
	if address := os.Getenv("SHOP_TEST_REDIS"); address != "" {
		if !strings.Contains(address, "://") {
			address = "redis://" + address + "/0"
		}
		return address
	}
	server, err := sharedRedis()
	require(t, err)
	return server.URL()
}

// StartRedis starts a Redis server for this test alone.
func StartRedis(t testing.TB, cfg testbed.RedisConfig) *testbed.Redis {
	t.Helper()
	server, err := testbed.StartRedis(t.Context(), cfg)
	return started(t, server, err)
}

// StartHTTP starts a program that serves HTTP for this test alone.
func StartHTTP(t testing.TB, cfg testbed.HTTPConfig) *testbed.HTTP {
	t.Helper()
	server, err := testbed.StartHTTP(t.Context(), cfg)
	return started(t, server, err)
}

// require ends the test when a server did not start: as skipped if it is merely
// not installed and nobody promised that it would be.
func require(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, testbed.ErrNotInstalled) && os.Getenv("SHOP_TEST_REQUIRE") != "1" {
		t.Skipf("%v; SHOP_TEST_REQUIRE=1 makes this a failure", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// started returns a server that was started for one test. It ends with the test.
func started[S io.Closer](t testing.TB, server S, err error) S {
	t.Helper()
	require(t, err)
	closeAtEnd(t, server.Close)
	return server
}

func closeAtEnd(t testing.TB, stop func() error) {
	t.Helper()
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
