// Package testbedtest gives tests the real servers of package testbed.
//
// Redis and Database serve tests that only need a server: one server of each
// kind is started per test binary, at the first request, and ends with it.
// Tests keep apart by keys of their own and by a fresh database each. When
// SHOP_TEST_REDIS (redis://HOST:PORT/0 or HOST:PORT) or SHOP_TEST_DATABASE
// (mysql://USER:PASSWORD@HOST:PORT/DB) is set, that server is used instead and
// nothing is started. Etcd does the same with SHOP_TEST_ETCD (HOST:PORT,...).
//
// StartRedis, StartSentinel, StartCluster, StartMariaDB, StartEtcd, StartEtcdCluster
// and StartProxy serve
// tests that break things: each call starts its own, whatever the environment says.
//
// Steady runs a test whose limits in time hold on a machine that runs, and runs it again, seven
// times at most, when it failed while nothing could run.
//
// A server that is not installed skips the test with the reason. With
// SHOP_TEST_REQUIRE=1 it fails the test: where every server is promised, a
// skipped test must not pass for a green one. With SHOP_TEST_REQUIRE=0 no server is started: `make check` runs
// only what needs none.
package testbedtest
