// Package testbedtest gives tests the real servers of package testbed.
//
// Redis and Database serve tests that only need a server. Each test binary starts one server of each kind, at the
// first request, and the server ends with the binary. Tests are separated by keys of their own, and by a fresh
// database each. If SHOP_TEST_REDIS (redis://HOST:PORT/0 or HOST:PORT) or SHOP_TEST_DATABASE
// (mysql://USER:PASSWORD@HOST:PORT/DB) is set, tests use that server, and none is started. SHOP_TEST_ETCD
// (HOST:PORT,...) does the same for Etcd, and SHOP_TEST_POSTGRES (postgres://USER:PASSWORD@HOST:PORT/DB) for Postgres.
// With SHOP_TEST_DATABASE=galera, Database starts two nodes of Galera, and tests use the first.
//
// StartRedis, StartSentinel, StartCluster, StartMariaDB, StartGalera, StartPostgres, StartEtcd, StartEtcdCluster and StartProxy serve tests
// that break things. Each call starts its own server, whatever the environment contains. The test may pause, kill and
// restart it, and it is closed when the test ends.
//
// Steady runs a test whose time limits assume a machine that is not paused. If the test fails while the machine was
// paused, Steady repeats it, at most seven times.
//
// If a server is not installed, the test is skipped with the reason. With SHOP_TEST_REQUIRE=1 the test fails
// instead, so a skipped test cannot pass for a green one. With SHOP_TEST_REQUIRE=0 no server is started: `make
// check` runs only tests that need none.
package testbedtest
