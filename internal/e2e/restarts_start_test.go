package e2e_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// waits is what a starting instance logs while it waits for a store.
const waits = "waiting for a store"

// behind returns a proxy for the server of a URL, and the URL with the proxy in its place.
func behind(t *testing.T, server string) (*testbed.Proxy, string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, u.Host)
	u.Host = proxy.Addr()
	return proxy, u.String()
}

// TestStartWaitsForAStore that refuses connections for a moment, as a server does that restarts.
func TestStartWaitsForAStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"database", "redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addresses := map[string]string{"database": testbedtest.Database(t), "redis": ownRedis(t)}
			proxy, proxied := behind(t, addresses[name])
			proxy.Refuse()
			addresses[name] = proxied
			s := launch(t, "--database", addresses["database"], "--redis", addresses["redis"])
			testbedtest.Eventually(t, "the instance waits, or has ended", func() bool {
				select {
				case <-s.exited:
					return true
				default:
					return strings.Contains(s.stderr.String(), waits)
				}
			})
			if err := proxy.Pass(); err != nil {
				t.Fatal(err)
			}
			s.listens(t)
			s.want(t, http.StatusOK, http.MethodGet, "/api/v1/skus", "")
			if n := strings.Count(s.stderr.String(), waits); n != 1 {
				t.Errorf("%d lines: %s", n, s.stderr)
			}
		})
	}
}

// TestStartFailsAtOnceOnInvalidInput: an answer that no wait will change ends the start.
func TestStartFailsAtOnceOnInvalidInput(t *testing.T) {
	t.Parallel()
	change := func(address string, f func(*url.URL)) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		f(u)
		return u.String()
	}
	database := testbedtest.Database(t)
	redis := testbedtest.StartRedis(t, testbed.RedisConfig{}).URL()
	for name, flags := range map[string][]string{
		"user of the database": {"--database", change(database, func(u *url.URL) { u.User = url.UserPassword("nobody", "wrong") })},
		"unknown database":     {"--database", change(database, func(u *url.URL) { u.Path = "/nowhere" })},
		"no such file":         {"--database", "sqlite:" + t.TempDir() + "/no/such/shop.db"},
		"password of redis":    {"--database", sqliteURL(t), "--redis", change(redis, func(u *url.URL) { u.User = url.UserPassword("nobody", "wrong") })},
	} {
		code, _, stderr := call(t, noEnv, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
		if code != 1 || strings.Contains(stderr, waits) {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
	}
	hasNoTables(t, database)
}

// TestStartRefusesARedisThatCannotServe: a user without rights, a replica and a server that evicts end the start at once.
func TestStartRefusesARedisThatCannotServe(t *testing.T) {
	t.Parallel()
	lru, replica, whole := evicting(t), testbedtest.StartRedis(t, testbed.RedisConfig{}), testbedtest.StartRedis(t, testbed.RedisConfig{})
	redisDo(t, replica.URL(), "REPLICAOF", "127.0.0.1", "1")
	for name, want := range map[string]struct{ redis, redlock, line string }{
		"no scripts":        {redis: user(t, whole, "scriptless", "-@scripting"), line: "NOPERM"},
		"no leases":         {redis: user(t, whole, "leaseless", "-hgetall"), line: "its user may run scripts and write"},
		"no writes":         {redis: user(t, whole, "reader", "-@write"), line: "its user may run scripts and write"},
		"replica":           {redis: replica.URL(), line: "READONLY"},
		"evicts":            {redis: user(t, lru, "unconfigured", "-config"), line: "maxmemory-policy is allkeys-lru"},
		"evicts, no INFO":   {redis: user(t, lru, "uninformed", "-info"), line: "maxmemory-policy is allkeys-lru"},
		"evicts in redlock": {redis: whole.URL(), redlock: "redis://127.0.0.1:1/0," + whole.URL() + "," + lru.URL(), line: lru.URL() + ": maxmemory-policy is allkeys-lru"},
	} {
		flags := []string{"serve", "--listen", "127.0.0.1:0", "--database", sqliteURL(t), "--redis", want.redis}
		if want.redlock != "" {
			flags = append(flags, "--redlock", want.redlock)
		}
		code, _, stderr := call(t, noEnv, flags...)
		if code != 1 || strings.Contains(stderr, waits) || !strings.Contains(stderr, want.line) {
			t.Errorf("%s: exit code %d, want 1 and %q: %s", name, code, want.line, stderr)
		}
	}
	s := start(t, "--database", sqliteURL(t), "--redis", user(t, whole, "untold", "-config", "-info"))
	if !strings.Contains(s.stderr.String(), "does not tell its maxmemory-policy") {
		t.Errorf("no warning: %s", s.stderr)
	}
}

// evicting returns a Redis that may delete any key to make room.
func evicting(t *testing.T) *testbed.Redis {
	t.Helper()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	redisDo(t, server.URL(), "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	return server
}

// user returns the address of server for a new user, who may do all but what rules take away.
func user(t *testing.T, server *testbed.Redis, name string, rules ...any) string {
	t.Helper()
	redisDo(t, server.URL(), append([]any{"ACL", "SETUSER", name, "on", "nopass", "~*", "&*", "+@all"}, rules...)...)
	return "redis://" + name + ":any@" + server.Addr()
}

func redisDo(t *testing.T, address string, args ...any) {
	t.Helper()
	rdb, err := redisclient.New(address)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	if err := rdb.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestStartEndsWithoutItsStore: the wait is bounded, and the last line is the error with the address.
func TestStartEndsWithoutItsStore(t *testing.T) {
	t.Parallel()
	for address, flags := range map[string][]string{
		"127.0.0.1:1": {"--database", sqliteURL(t), "--redis", "redis://user:secret@127.0.0.1:1/0"},
		"127.0.0.1:2": {"--database", "mysql://user:secret@127.0.0.1:2/shop"},
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := call(t, noEnv, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
			log, last, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
			if code != 1 || !strings.Contains(log, waits) || !strings.HasPrefix(last, "shop: open ") || !strings.Contains(last, address) ||
				!strings.HasSuffix(last, ": check "+flags[len(flags)-2]+", and that the server runs") ||
				strings.Contains(last, "\n") || strings.Contains(stderr, "secret") {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}

// TestGaleraNodeIsNamedAtTheStart starts an instance on a server with write set replication, and one on a server without.
func TestGaleraNodeIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	node := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"wsrep_on": "ON"}})
	for database, want := range map[string]int{node.URL(): 1, testbedtest.Database(t): 0} {
		s := launch(t, "--database", database)
		s.listens(t)
		if n := strings.Count(s.stderr.String(), "is a node of a Galera cluster"); n != want {
			t.Errorf("%d warnings, want %d: %s", n, want, s.stderr)
		}
	}
}

// TestRedisThatBeginsToRefuse: while an instance runs, its user loses the right to run scripts. SKUs that need Redis are refused at once, with
// the reason in the log, and the others are sold. With the right, all are sold again.
func TestRedisThatBeginsToRefuse(t *testing.T) {
	t.Parallel()
	server, client, needing := testbedtest.StartRedis(t, testbed.RedisConfig{}), customers(t), []string{"redis", "redis-cohort", "lua"}
	r := start(t, "--database", sqliteURL(t), "--redis", user(t, server, "limited"))
	sell := func(when string, skus ...string) {
		t.Helper()
		for _, sku := range skus {
			if a := served(t.Context(), client, r.url, sku); a.status != http.StatusCreated {
				t.Errorf("%s, %s: %v", when, sku, a)
			}
		}
	}
	for _, sku := range append(needing, "conditional") {
		r.want(t, http.StatusCreated, http.MethodPut, "/api/v1/skus/"+sku, `{"on_hand":9,"strategy":"`+sku+`"}`)
	}
	sell("before", append(needing, "conditional")...)
	redisDo(t, server.URL(), "ACL", "SETUSER", "limited", "-@scripting")
	for _, sku := range needing {
		a := purchase(t.Context(), client, r.url, sku)
		for end := time.Now().Add(time.Minute); a.status == http.StatusTooManyRequests && time.Now().Before(end); { // without permits an instance counts its own
			a = purchase(t.Context(), client, r.url, sku)
		}
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "The lock service of a SKU is unavailable. Nothing happened.") || a.took > 8*time.Second {
			t.Errorf("%s: %v", sku, a) // an order that waits for a lock takes longer
		}
	}
	testbedtest.Eventually(t, "the strategies are unavailable", func() bool { return r.unavailable(t) == "redis-unfenced redis redis-cohort lua " })
	reason := regexp.MustCompile(`"lock service unavailable; [^\n]*"service":"redis"[^\n]*NOPERM`)
	testbedtest.Eventually(t, "the log has the reason, and that permits are degraded", func() bool {
		return reason.MatchString(r.stderr.String()) && strings.Contains(r.stderr.String(), `"permits degraded: `)
	})
	sell("meanwhile", "conditional")
	r.want(t, http.StatusOK, http.MethodGet, "/readyz", "")
	redisDo(t, server.URL(), "ACL", "SETUSER", "limited", "+@scripting")
	sell("after", append(needing, "conditional")...)
}
