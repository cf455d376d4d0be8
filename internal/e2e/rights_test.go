package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/stock"
)

// right is a row of docs/reference/rights.md.
type right struct{ of, name, without string }

// TestRightsPage gives a user all rights that docs/reference/rights.md lists for a part, and then all but one. With all of
// them nothing fails. Without one that fails which the page names.
func TestRightsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	zookeeper := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{Tick: deployedTick(t)})
	parts := databaseParts(t)
	sentinel, cluster := testbedtest.StartSentinel(t), testbedtest.StartCluster(t)
	var redlock []string
	for range 3 {
		redlock = append(redlock, testbedtest.StartRedis(t, testbed.RedisConfig{}).Addr())
	}
	maps.Copy(parts, map[string]tryRights{
		"Sentinel `shop serve`": func(t *testing.T, name string, rights []string) string {
			t.Helper()
			allow(t, name, rights, sentinel.SentinelAddrs())
			return salesFail(t, []string{"conditional", "redis"}, nil, "--database", sqliteURL(t),
				"--redis", redistest.SentinelURL(sentinel)+"?sentinel-user="+name+"&sentinel-password=secret")
		},
		"Cluster `shop serve`": func(t *testing.T, name string, rights []string) string {
			t.Helper()
			allow(t, name, append([]string{"~shop:* &shop:* +@read -@dangerous +@write -@dangerous +@scripting +@pubsub +@connection +time +info"}, rights...), cluster.Addrs())
			return salesFail(t, []string{"conditional", "redis"}, nil, "--database", sqliteURL(t),
				"--redis", strings.Replace(redistest.ClusterURL(cluster), "://", "://"+name+":secret@", 1))
		},
		"Redis `shop serve`": redisSales,
		"Redlock `shop serve`": func(t *testing.T, name string, rights []string) string {
			t.Helper()
			allow(t, name, rights, redlock)
			servers := "redis://" + name + ":secret@" + strings.Join(redlock, "/1,redis://"+name+":secret@") + "/1"
			return salesFail(t, []string{"conditional", "redlock", "redlock-cohort"}, nil, "--database", sqliteURL(t), "--redlock", servers)
		},
		"etcd `shop serve`": etcdSales,
		"ZooKeeper `shop serve`": func(t *testing.T, name string, rights []string) string {
			t.Helper()
			return zookeeperSales(t, zookeeper.Addr(), name, rights)
		},
	})
	rows := rightsOf(string(page))
	n := 0
	for of, try := range parts {
		if len(rows[of]) == 0 {
			t.Errorf("the page has no rights of %s", of)
		}
		all := right{name: "nothing"}
		for _, without := range append(rows[of], all) {
			n++
			name := fmt.Sprint("user", n)
			var rights []string
			for _, r := range rows[of] {
				if r != without {
					rights = append(rights, r.name)
				}
			}
			t.Run(of+" without "+without.name, func(t *testing.T) {
				t.Parallel()
				if failed := try(t, name, rights); failed != without.without {
					t.Errorf("%q fails, the page has %q", failed, without.without)
				}
			})
		}
	}
	if len(rows) != len(parts) {
		t.Errorf("the page has rights of %d parts, the test of %d", len(rows), len(parts))
	}
}

// tryRights gives a user rights, and returns what fails.
type tryRights func(t *testing.T, name string, rights []string) (failed string)

// databaseParts are those of a database. SQL is MariaDB and PostgreSQL, at which the same must fail.
func databaseParts(t *testing.T) map[string]tryRights {
	t.Helper()
	database := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	postgres := testbedtest.StartPostgres(t, testbed.PostgresConfig{Vars: map[string]string{"fsync": "off"}})
	both := func(try func(t *testing.T, url string) string) tryRights {
		return func(t *testing.T, name string, rights []string) string {
			t.Helper()
			url := sqlUser(t, database, name, rights)
			migrated(t, strings.Replace(url, name+"@", "root@", 1))
			onMariaDB, onPostgreSQL := try(t, url), try(t, postgresUser(t, postgres, name, append(rights, "USAGE"), true))
			if onMariaDB != onPostgreSQL {
				return fmt.Sprintf("MariaDB: %s, PostgreSQL: %s", onMariaDB, onPostgreSQL)
			}
			return onMariaDB
		}
	}
	return map[string]tryRights{
		"MariaDB `shop migrate`": func(t *testing.T, name string, rights []string) string {
			t.Helper()
			code, _, stderr := command(t, "migrate", "--create", "--database", sqlUser(t, database, name, rights))
			return failedCommand("migrate", code, stderr)
		},
		"PostgreSQL `shop migrate`": func(t *testing.T, name string, rights []string) string {
			t.Helper()
			code, _, stderr := command(t, "migrate", "--create", "--database", postgresUser(t, postgres, name, rights, false))
			return failedCommand("migrate", code, stderr)
		},
		"PostgreSQL `shop serve`": func(t *testing.T, name string, rights []string) string {
			t.Helper()
			return salesFail(t, []string{"conditional"}, nil, "--database", postgresUser(t, postgres, name, append(rights, "SELECT", "INSERT", "UPDATE", "DELETE"), true))
		},
		"SQL `shop serve`": both(func(t *testing.T, url string) string {
			t.Helper()
			return salesFail(t, []string{"conditional", "for-update", "sql-cohort"}, nil, "--database", url)
		}),
		"SQL `shop doctor`": both(func(t *testing.T, url string) string {
			t.Helper()
			code, out, stderr := command(t, "doctor", "--database", url)
			if code == 1 && strings.Contains(out, "denied") {
				return "doctor"
			}
			return strings.TrimSpace(stderr)
		}),
		"SQL `shop audit`": both(func(t *testing.T, url string) string {
			t.Helper()
			code, _, stderr := command(t, "audit", "--database", url)
			return failedCommand("audit", code, stderr)
		}),
		"SQL `shop keys`": both(keysFail), "SQL `shop fence`": both(fenceFails),
	}
}

// keysFail makes a key and revokes it, and returns what fails.
func keysFail(t *testing.T, url string) string {
	t.Helper()
	code, out, stderr := command(t, "keys", "create", "--admin", "--json", "--database", url)
	if code != 0 {
		return failedCommand("keys", code, stderr)
	}
	var key struct{ Prefix string }
	if err := json.Unmarshal([]byte(out), &key); err != nil {
		t.Fatal(out, err)
	}
	code, _, stderr = command(t, "keys", "revoke", key.Prefix, "--database", url)
	return failedCommand("keys", code, stderr)
}

// fenceFails raises the token offset of a SKU, which the owner of the tables has made, and returns what fails.
func fenceFails(t *testing.T, url string) string {
	t.Helper()
	owner := map[bool]string{true: "root@", false: "shop@"}[strings.HasPrefix(url, "mysql:")]
	store := books(t, regexp.MustCompile(`\w+@`).ReplaceAllString(url, owner))
	if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: "a", OnHand: 1, Strategy: "etcd"}); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := command(t, "fence", "rebase", "a", "--database", url)
	return failedCommand("fence", code, stderr)
}

// rightsOf returns the rows of a page, by their parts.
func rightsOf(page string) map[string][]right {
	rows := make(map[string][]right)
	for _, m := range regexp.MustCompile("(?m)^\\| (\\w+) \\| (`[^`]+`) \\| `([^`]+)` \\| [^|]+ \\| ([^|]+) \\|$").FindAllStringSubmatch(page, -1) {
		of := m[1] + " " + m[2]
		rows[of] = append(rows[of], right{of, m[3], m[4]})
	}
	return rows
}

// The lines of docs/reference/rights.md that make the users of Redis and of Redlock have the rights of its table.
func TestRightsPageHasTheUserOfRedis(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"Redis `shop serve`", "Redlock `shop serve`"} {
		var acl []string
		for _, r := range rightsOf(string(page))[of] {
			acl = append(acl, r.name)
		}
		if !strings.Contains(string(page), "ACL SETUSER shop on >PASSWORD -@all "+strings.Join(acl, " ")+"\n") {
			t.Errorf("the page has no user with the rights %q", acl)
		}
	}
}

// With the one right of the page at the sentinels, an instance sells by their lock again after a failover.
func TestFailoverWithTheRightsOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	sentinel := testbedtest.StartSentinel(t)
	for _, r := range rightsOf(string(page))["Sentinel `shop serve`"] {
		allow(t, "few", []string{r.name}, sentinel.SentinelAddrs())
	}
	in := start(t, "--database", sqliteURL(t), "--redis", redistest.SentinelURL(sentinel)+"?sentinel-user=few&sentinel-password=secret")
	place := func() bool {
		status, _ := in.send(t, http.MethodPost, "/api/v1/orders", oneUnit)
		return status == http.StatusCreated
	}
	if status, body := in.send(t, http.MethodPut, "/api/v1/skus/a", `{"on_hand":9,"strategy":"redis"}`); status != http.StatusCreated {
		t.Fatal("before the failover", status, body)
	}
	testbedtest.Eventually(t, "an order before the failover", place)
	master, err := sentinel.Master(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	testbedtest.Eventually(t, "an order after the failover", place)
}

// failedCommand returns the name of a command that has failed because a right is missing.
func failedCommand(name string, code int, stderr string) string {
	if code == 1 && (strings.Contains(stderr, "denied") || strings.Contains(stderr, "with CREATE on the schema")) && strings.Count(stderr, "\n") == 1 {
		return name
	}
	return strings.TrimSpace(stderr)
}

// sqlUser returns the URL of a new database for a new user with rights in it.
func sqlUser(t *testing.T, m *testbed.MariaDB, name string, rights []string) string {
	t.Helper()
	url, err := m.NewDatabase(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	db := testbedtest.OpenSQL(t, m.URL())
	for _, statement := range []string{"CREATE USER " + name, "GRANT " + strings.Join(append(rights, "USAGE"), ", ") + " ON " + name + ".* TO " + name} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	return strings.Replace(url, "root@", name+"@", 1)
}

// postgresUser returns the URL of a new database for a new user with rights in it, and with the schema of the program if it is made.
func postgresUser(t *testing.T, server *testbed.Postgres, name string, rights []string, made bool) string {
	t.Helper()
	execAt(t, server, "CREATE ROLE "+name+" LOGIN")
	execAt(t, server, "CREATE DATABASE "+name)
	url := strings.TrimSuffix(server.URL(), testbed.DefaultDatabase) + name
	if made {
		migrated(t, url)
	}
	db := testbedtest.OpenSQL(t, url)
	statements := []string{"REVOKE ALL ON SCHEMA public FROM PUBLIC"}
	for _, right := range rights {
		on := "ALL TABLES IN SCHEMA"
		if right == "USAGE" || right == "CREATE" {
			on = "SCHEMA"
		}
		statements = append(statements, "GRANT "+right+" ON "+on+" public TO "+name)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	return strings.Replace(url, "shop@", name+"@", 1)
}

// allow gives a user rights at servers of Redis.
func allow(t *testing.T, name string, rights, servers []string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", name, "on", ">secret", "-@all"}
	for word := range strings.FieldsSeq(strings.Join(rights, " ")) {
		args = append(args, strings.ReplaceAll(word, `\`, ""))
	}
	for _, server := range servers {
		if err := redistest.Client(t, "redis://"+server).Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// redisSales is salesFail at a Redis of whose user these are the rights.
func redisSales(t *testing.T, name string, rights []string) string {
	t.Helper()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	root := redis.NewClient(&redis.Options{Addr: server.Addr(), DB: 1})
	defer root.Close()
	allow(t, name, rights, []string{server.Addr()})
	var limited atomic.Bool
	sold, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { // the key of the limit lasts for a second
		for sold.Err() == nil && !limited.Load() {
			n, err := root.Exists(sold, "rate:shop:c1").Result()
			limited.Store(err == nil && n > 0)
			<-time.After(20 * time.Millisecond)
		}
	})
	shared := func() string {
		if channels, err := root.PubSubChannels(t.Context(), "shop:*").Result(); err != nil || len(channels) == 0 {
			return "notifications"
		}
		if !limited.Load() {
			return "rate"
		}
		return ""
	}
	return salesFail(t, []string{"conditional", "redis", "redis-cohort", "lua"}, shared,
		"--database", sqliteURL(t), "--redis", fmt.Sprintf("redis://%s:secret@%s/1", name, server.Addr()))
}

// etcdSales is salesFail at an etcd of whose user these are the rights.
func etcdSales(t *testing.T, name string, rights []string) string {
	t.Helper()
	server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	may := map[string]clientv3.PermissionType{
		"read shop/": clientv3.PermissionType(clientv3.PermRead), "write shop/": clientv3.PermissionType(clientv3.PermWrite),
		"read shop/ write shop/": clientv3.PermissionType(clientv3.PermReadWrite),
	}[strings.Join(rights, " ")]
	errs := make([]error, 7)
	_, errs[0] = root.UserAdd(t.Context(), "root", "secret")
	_, errs[1] = root.UserGrantRole(t.Context(), "root", "root")
	_, errs[2] = root.RoleAdd(t.Context(), name)
	_, errs[3] = root.RoleGrantPermission(t.Context(), name, "shop/", clientv3.GetPrefixRangeEnd("shop/"), may)
	_, errs[4] = root.UserAdd(t.Context(), name, "secret")
	_, errs[5] = root.UserGrantRole(t.Context(), name, name)
	_, errs[6] = root.AuthEnable(t.Context())
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return salesFail(t, []string{"conditional", "etcd", "etcd-cohort"}, nil,
		"--database", sqliteURL(t), "--etcd", name+":secret@"+server.Addr())
}

// zookeeperSales is salesFail at a ZooKeeper of whose root node, for a user, these are the rights.
func zookeeperSales(t *testing.T, address, name string, rights []string) string {
	t.Helper()
	conn, _, err := zk.Connect([]string{address}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var all int32
	for i, r := range []string{"read", "write", "create", "delete", "admin"} {
		if slices.Contains(rights, r) {
			all |= 1 << i
		}
	}
	if err := conn.AddAuth("digest", []byte("owner:secret")); err != nil {
		t.Fatal(err)
	}
	owned := zk.AuthACL(zk.PermAll)
	for _, node := range []struct {
		path string
		acl  []zk.ACL
	}{{"/" + name, owned}, {"/" + name + "/shop", slices.Concat(owned, zk.DigestACL(all, name, "secret"))}} {
		if _, err := conn.Create(node.path, nil, 0, node.acl); err != nil {
			t.Fatal(err)
		}
	}
	return salesFail(t, []string{"conditional", "zookeeper", "zookeeper-cohort"}, nil,
		"--database", sqliteURL(t), "--zookeeper", address+"/"+name, "--zookeeper-auth", name+":secret")
}

// missingRight is in the log of an instance that lacks a right.
var missingRight = regexp.MustCompile("NOPERM|can't run this command|denied|not authenticated")

// salesFail has an instance sell by strategies. It returns the first thing that does not work, or nothing: the start, a SKU,
// an order of a strategy, a cancellation, a payment, what shared names, an expiry, the stop, or the log, if only a line of
// that shows that a right is missing.
func salesFail(t *testing.T, strategies []string, shared func() string, args ...string) string {
	t.Helper()
	in := launchOf(t, product(t), append([]string{"--order-ttl", "2s", "--customer-rate", "20"}, args...)...)
	line, err := bufio.NewReader(in.stdout).ReadString('\n')
	if err != nil {
		<-in.exited
		t.Log(in.stderr.String())
		return "start"
	}
	_, in.url, _ = strings.Cut(strings.TrimSpace(line), fleet.Listening)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := customers(t)
	send := func(status int, method, path, body string) (answer, bool) {
		for began := time.Now(); ; <-time.After(50 * time.Millisecond) {
			a, patience := ask(ctx, client, method, in.url+path, body), 5*time.Second
			if missingRight.MatchString(in.stderr.String()) {
				patience = time.Second
			}
			if a.status == status || !later(a.status, a.body) || time.Since(began) > patience {
				return a, a.status == status
			}
		}
	}
	var unpaid string
	for _, strategy := range strategies {
		if _, ok := send(http.StatusCreated, "PUT", "/api/v1/skus/"+strategy, fmt.Sprintf(`{"on_hand":9,"strategy":%q}`, strategy)); !ok {
			return "SKU"
		}
		for _, next := range []struct{ name, path, body string }{{"cancellation", "/cancel", ""}, {"payment", "/pay", `{"payment_id":"p"}`}, {}} {
			a, ok := send(http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+strategy+`"`, 1))
			if !ok {
				t.Log(a)
				return "order of " + strategy
			}
			unpaid = "/api/v1/orders/" + orderID(t, a.body)
			if next.name == "" {
				continue
			}
			if a, ok := send(http.StatusOK, "POST", unpaid+next.path, next.body); !ok {
				t.Log(a)
				return next.name
			}
		}
	}
	if shared != nil {
		if failed := shared(); failed == "notifications" && !strings.Contains(in.stderr.String(), "redis refuses notifications") {
			return "notifications, without a warning"
		} else if failed != "" {
			return failed
		}
	}
	for end := time.Now().Add(15 * time.Second); ; <-time.After(50 * time.Millisecond) {
		if a, _ := send(http.StatusOK, "GET", unpaid, ""); strings.Contains(a.body, "EXPIRED") {
			break
		} else if time.Now().After(end) {
			return "expiry"
		}
	}
	in.stop()
	<-in.exited
	if in.err != nil {
		return "stop"
	}
	if missingRight.MatchString(in.stderr.String()) {
		return "log"
	}
	return ""
}
