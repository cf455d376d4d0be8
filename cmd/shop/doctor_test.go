package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/app"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// doctor runs the command, and returns the lines of its table and its checks in JSON. The verdicts are the same.
func doctor(t testing.TB, wantCode int, args ...string) (table []string, checks []app.Check) {
	t.Helper()
	args = append([]string{"doctor"}, args...)
	code, out, stderr := call(t, noEnv, args...)
	if code != wantCode || strings.Contains(out+stderr, "secret") || (code == 0) != (stderr == "") {
		t.Errorf("exit code %d, want %d: %s%s", code, wantCode, out, stderr)
	}
	table = strings.Split(strings.TrimSpace(out), "\n")
	code, out, stderr = call(t, noEnv, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &checks); err != nil || code != wantCode || strings.Contains(out+stderr, "secret") {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, stderr)
	}
	if len(table) != len(checks)+1 {
		t.Errorf("%d lines, %d checks", len(table), len(checks))
	}
	return table, checks
}

// failures returns the checks that are not ok, as STORE CHECK VERDICT.
func failures(checks []app.Check) (all []string) {
	for _, c := range checks {
		if c.Verdict != app.OK && c.Check != "latency" { // of a machine that is busy: TestLatencyOfAFarStoreIsAWarning
			store, _, _ := strings.Cut(c.Store, " ") // without an address
			all = append(all, fmt.Sprint(store, " ", c.Check, " ", c.Verdict))
		}
		if (c.Verdict == app.OK) != (c.Change == "") || c.Value == "" || c.Change != "" && strings.Contains(c.Value, c.Change) {
			panic(fmt.Sprintf("%+v", c))
		}
	}
	return all
}

// prepared is a server with a schema, and the URL of a user who may read and write.
type prepared struct {
	t        *testing.T
	server   *testbed.MariaDB
	database string
}

func prepare(t *testing.T) prepared {
	t.Helper()
	p := prepared{t: t, server: testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"innodb_flush_log_at_trx_commit": "1"}})}
	p.exec("CREATE USER seller@'%' IDENTIFIED BY 'secret'", "CREATE USER owner@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON shop.* TO owner@'%'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO seller@'%'", "CREATE USER reader@'%' IDENTIFIED BY 'secret'", "GRANT SELECT, UPDATE, DELETE ON shop.* TO reader@'%'")
	p.database = "mysql://seller:secret@" + p.server.Addr() + "/shop"
	if code, _, stderr := call(t, noEnv, "migrate", "--create", "--database", strings.Replace(p.database, "seller", "owner", 1)); code != 0 {
		t.Fatal(stderr)
	}
	return p
}

func (p prepared) exec(statements ...string) {
	p.t.Helper()
	for _, statement := range statements {
		if _, err := testbedtest.OpenSQL(p.t, p.server.URL()).ExecContext(p.t.Context(), statement); err != nil {
			p.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// redisServers starts servers, and returns their URLs.
func redisServers(t *testing.T, n int, args ...string) (urls []string) {
	t.Helper()
	for range n {
		urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{Args: args}).URL())
	}
	return urls
}

// withPassword gives the server at a URL a password, and returns its URL with the password.
func withPassword(t *testing.T, u string) string {
	t.Helper()
	configure(t, u, "CONFIG SET requirepass secret")
	return strings.Replace(u, "redis://", "redis://:secret@", 1)
}

// withUser gives the server at a URL the user of docs/reference/rights.md, and returns its URL with the user.
func withUser(t *testing.T, u string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^ACL SETUSER .*$`).FindString(string(page))
	configure(t, u, strings.Replace(command, ">PASSWORD", ">secret", 1))
	return strings.Replace(u, "redis://", "redis://shop:secret@", 1)
}

// configure sends a command to a server.
func configure(t *testing.T, u, command string) {
	t.Helper()
	rdb, err := redisclient.New(u)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	var args []any
	for word := range strings.FieldsSeq(command) {
		args = append(args, word)
	}
	if err := rdb.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// Each store is examined, and an order could be placed. None is stored.
func TestDoctorOfAGoodSetUp(t *testing.T) {
	t.Parallel()
	p := prepare(t)
	const server = "version,role,maxmemory,maxclients,appendonly,save,maxmemory-policy,clock,latency"
	want := []string{"STORE CHECK VERDICT"}
	for _, each := range [][2]string{
		{"database", "address,version,role,binlog_format,tx_isolation,innodb_flush_log_at_trx_commit,sync_binlog,max_connections,schema,write,clock,latency"},
		{"redis", "address,lock,notifications," + server},
		{"redlock HOST", server},
		{"redlock HOST", server},
		{"redlock HOST", server},
		{"redlock", "lock"},
		{"zookeeper HOST", "version,role,latency"},
		{"zookeeper", "lock"},
		{"etcd HOST", "version,role,alarms,latency"},
		{"etcd", "lock"},
	} {
		for check := range strings.SplitSeq(each[1], ",") {
			want = append(want, each[0]+" "+check+" ok")
		}
	}
	flags := []string{
		"--database", p.database, "--redis", redisServers(t, 1)[0], "--redlock", strings.Join(redisServers(t, 3), ","),
		"--zookeeper", testbedtest.ZooKeeper(t), "--etcd", testbedtest.Etcd(t),
	}
	testbedtest.Steady(t, func(t testing.TB) {
		table, _ := doctor(t, 0, flags...)
		at := strings.Index(table[0], "VALUE")
		var got []string
		for i, line := range table {
			if i > 0 && (line[at-1] != ' ' || line[at] == ' ') {
				t.Errorf("the value is in another column: %s", line)
			}
			columns := strings.Join(strings.Fields(line[:at]), " ")
			if strings.HasSuffix(columns, "latency warn") { // of a machine that is busy: TestLatencyOfAFarStoreIsAWarning
				columns = strings.TrimSuffix(columns, "warn") + "ok"
			}
			got = append(got, regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(columns, "HOST"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s%s", diff, strings.Join(table, "\n"))
		}
	})
	orders := -1
	err := testbedtest.OpenSQL(t, p.server.URL()).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&orders)
	if err != nil || orders != 0 {
		t.Errorf("%d orders, %v", orders, err)
	}
}

// A part of what an order needs is missing in each set-up, and the check of this part fails.
func TestDoctorOfABadDatabase(t *testing.T) {
	t.Parallel()
	p := prepare(t)
	reader := strings.Replace(p.database, "seller", "reader", 1)
	file := "sqlite:" + t.TempDir() + "/shop.db"
	for _, c := range []struct {
		name, database, spoil, mend string
		want                        []string
		change                      string
	}{
		{"nothing is missing", p.database, "DO 0", "DO 0", nil, ""},
		{
			"the server is read-only", p.database, "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0",
			[]string{"database open fail"},
			"name the server that accepts writes",
		},
		{"the user may not insert", reader, "DO 0", "DO 0", []string{"database write fail"}, "the rights to read and write"},
		{
			"the user may insert orders only", reader, "GRANT INSERT ON shop.orders TO reader@'%'", "REVOKE INSERT ON shop.orders FROM reader@'%'",
			[]string{"database write fail"},
			"the rights to read and write",
		},
		{
			"the schema is old", p.database, "UPDATE schema_migrations SET version = -version WHERE version > 12", "UPDATE schema_migrations SET version = ABS(version)",
			[]string{"database schema fail"},
			"run shop migrate",
		},
		{
			"other clients have nearly all connections", p.database, "SET GLOBAL max_connections = 30", "SET GLOBAL max_connections = 151",
			[]string{"database max_connections warn"},
			"raise it",
		},
		{"no server listens", "mysql://seller:secret@127.0.0.1:1/shop", "DO 0", "DO 0", []string{"database open fail"}, "that the server runs"},
		{"the password is wrong", strings.Replace(p.database, "secret", "secret2", 1), "DO 0", "DO 0", []string{"database open fail"}, "check the user, the password"},
		{
			"there is no such database", strings.Replace(p.database, "seller:secret", "root", 1) + "s", "DO 0", "DO 0",
			[]string{"database open fail"},
			"or create it by CREATE DATABASE and shop migrate --create",
		},
		{
			"the user may not use the database", p.database + "s", "CREATE DATABASE shops", "GRANT ALL ON shops.* TO seller@'%'",
			[]string{"database open fail"},
			"and that the user has rights in it",
		},
		{
			"the database is empty", p.database + "s", "DO 0", "DROP DATABASE shops",
			[]string{"database schema fail"},
			"shop migrate --create makes a schema",
		},
		{"there is no file", file, "DO 0", "DO 0", []string{"database open fail"}, "shop migrate --create"},
	} {
		p.exec(c.spoil)
		code := 0
		if slices.ContainsFunc(c.want, func(check string) bool { return strings.HasSuffix(check, "fail") }) {
			code = 1
		}
		table, checks := doctor(t, code, "--database", c.database)
		if got := failures(checks); !slices.Equal(got, c.want) || !strings.Contains(strings.Join(table, "\n"), c.change) {
			t.Errorf("%s: %q, want %q and %q:\n%s", c.name, got, c.want, c.change, strings.Join(table, "\n"))
		}
		p.exec(c.mend)
	}
	if _, err := os.Stat(strings.TrimPrefix(file, "sqlite:")); err == nil {
		t.Error("the file was created")
	}
}

// A Redis that an instance would refuse fails. A server that Redlock, ZooKeeper or etcd can do without is a warning.
func TestDoctorOfBadLockServices(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	if code, _, stderr := call(t, noEnv, "migrate", "--create", "--database", database); code != 0 {
		t.Fatal(stderr)
	}
	good := redisServers(t, 3)
	host, port, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(good[0], "redis://"), "/0"), ":")
	replica := redisServers(t, 1, "--replicaof", host+" "+port)[0]
	least := withUser(t, redisServers(t, 1)[0])
	good[0] = withPassword(t, good[0])
	mute := withUser(t, redisServers(t, 1)[0])
	configure(t, strings.Replace(mute, "shop:secret@", "", 1), "ACL SETUSER shop -@pubsub")
	evicts := redisServers(t, 1, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")[0]
	const away, away2 = "redis://:secret@127.0.0.1:1/0", "redis://:secret@127.0.0.1:2/0"
	for name, c := range map[string]struct {
		flag, value string
		want        []string
	}{
		"the policy evicts":            {"--redis", evicts, []string{"redis maxmemory-policy fail"}},
		"a replica":                    {"--redis", replica, []string{"redis write fail", "redis role fail"}},
		"a user with the least rights": {"--redis", least, nil},
		"a user without notifications": {"--redis", mute, []string{"redis notifications warn"}},
		"with a password":              {"--redis", good[0], nil},
		"a wrong password":             {"--redis", strings.Replace(good[0], "secret", "secret2", 1), []string{"redis write fail", "redis ping fail"}},
		"away":                         {"--redis", away, []string{"redis write fail", "redis ping fail"}},
		"all are there":                {"--redlock", strings.Join(good, ","), nil},
		"a minority is unavailable":    {"--redlock", strings.Join([]string{good[0], away, good[1]}, ","), []string{"redlock ping warn"}},
		"a majority is unavailable":    {"--redlock", strings.Join([]string{good[0], away, away2}, ","), []string{"redlock ping warn", "redlock ping warn", "redlock lock fail"}},
		"one of three evicts":          {"--redlock", strings.Join([]string{good[0], good[1], evicts}, ","), []string{"redlock maxmemory-policy fail", "redlock lock fail"}},
		"one ZooKeeper of two":         {"--zookeeper", testbedtest.ZooKeeper(t) + ",127.0.0.1:1", []string{"zookeeper version warn"}},
		"no ZooKeeper":                 {"--zookeeper", "127.0.0.1:1", []string{"zookeeper version warn", "zookeeper lock fail"}},
		"one etcd member of two":       {"--etcd", testbedtest.Etcd(t) + ",127.0.0.1:1", []string{"etcd version warn"}},
		"no etcd":                      {"--etcd", "127.0.0.1:1", []string{"etcd version warn", "etcd lock fail"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := 0
			if slices.ContainsFunc(c.want, func(check string) bool { return strings.HasSuffix(check, "fail") }) {
				code = 1
			}
			testbedtest.Steady(t, func(t testing.TB) {
				table, checks := doctor(t, code, "--database", database, c.flag, c.value)
				if got := failures(checks); !slices.Equal(got, c.want) {
					t.Errorf("%q, want %q:\n%s", got, c.want, strings.Join(table, "\n"))
				}
			})
		})
	}
}

// Each host of a list has a line with its role, or says why it has none. An order can be placed without that host.
func TestDoctorNamesEachHost(t *testing.T) {
	t.Parallel()
	servers := testbedtest.StartReplicated(t, 2, nil)
	writer, replica := servers[0], servers[1]
	sentinel := testbedtest.StartSentinel(t)
	database := "mysql://seller:secret@" + replica.Addr() + ",127.0.0.1:1," + writer.Addr() + "/" + testbed.DefaultDatabase
	if code, _, stderr := call(t, noEnv, "migrate", "--create", "--database", database); code != 0 {
		t.Fatal(stderr)
	}
	watchers := sentinel.SentinelAddrs()
	if err := sentinel.Sentinels()[0].Pause(); err != nil {
		t.Fatal(err)
	}
	defer sentinel.Sentinels()[0].Resume()
	testbedtest.Steady(t, func(t testing.TB) {
		_, checks := doctor(t, 0, "--database", database, "--redis", "redis+sentinel://"+strings.Join(watchers, ",")+"/"+sentinel.MasterName())
		got := make(map[string]string)
		for _, c := range checks {
			if c.Check == "host" {
				got[c.Store] = fmt.Sprint(c.Verdict, " ", c.Value)
			}
		}
		for store, want := range map[string]string{
			"database " + replica.Addr(): "ok read-only", "database 127.0.0.1:1": "warn dial tcp", "database " + writer.Addr(): "ok writer",
			"redis " + watchers[0]: "warn ", "redis " + watchers[1]: "ok sentinel name=" + sentinel.MasterName() + ",status=ok", "redis " + watchers[2]: "ok sentinel ",
		} {
			if !strings.HasPrefix(got[store], want) {
				t.Errorf("%s: %q, want %q", store, got[store], want)
			}
		}
		if len(got) != 6 {
			t.Errorf("%d hosts, want 6: %q", len(got), got)
		}
	})
}
