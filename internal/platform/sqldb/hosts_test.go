package sqldb_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A list of hosts is read as it is meant, or refused with what is wrong in it.
func TestHostsOfAURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"mysql://u:p@a:1,b:2/shop":          "",
		"mysql://u@a,b,c/shop":              "",
		"mysql://u@[::1]:1,[::2]/shop":      "",
		"mysql://u@a:1,b:2,a:1/shop":        "the host a:1 is in the list twice",
		"mysql://u@a,b,a:3306/shop":         "the host a:3306 is in the list twice",
		"mysql://u@a:1,/shop":               "want mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"mysql://u@a:1,:2/shop":             "want mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"mysql://u@a:1,b:x/shop":            "want mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"mysql://u@a:1,mysql://u@b:1/shop":  "want mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"mysql://u@a:1,sqlite:shop.db/shop": "want mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"sqlite://a:1,b:2/shop":             "a file has no host: want sqlite:FILE",
	} {
		err := sqldb.ValidURL(url)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

// seller lets a user who may not write to a read-only server use the database of each server, and returns the URL of all.
func seller(t *testing.T, servers ...*testbed.MariaDB) string {
	t.Helper()
	var hosts []string
	for _, m := range servers {
		hosts = append(hosts, m.Addr())
		for _, statement := range []string{"CREATE USER seller", "GRANT ALL ON shop.* TO seller"} {
			if _, err := testbedtest.OpenSQL(t, m.URL()).ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	return "mysql://seller@" + strings.Join(hosts, ",") + "/shop"
}

// Connections lead to the host that is not read-only, wherever it is in the list, and follow it. A host that is paused or
// gone is no failure if another one accepts writes. Without such a host, each is named with its reason.
func TestConnectionsLeadToTheWriter(t *testing.T) {
	t.Parallel()
	a, b := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{}), testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	url := seller(t, a, b)
	readOnly := func(m *testbed.MariaDB, on int) { testbedtest.Exec(t, m, fmt.Sprint("SET GLOBAL read_only = ", on)) }
	readOnly(a, 1)
	d, err := sqldb.Open(t.Context(), url, sqldb.AccessCreate)
	if err != nil {
		t.Fatal(err)
	}
	if want := "mysql://" + a.Addr() + "," + b.Addr() + "/shop"; d.Address != want {
		t.Errorf("the address is %s, want %s", d.Address, want)
	}
	usual, single := sql.OpenDB(d.Usual), sql.OpenDB(d.Single)
	defer usual.Close()
	defer single.Close()
	leadsTo(t, usual, b)
	leadsTo(t, single, b)

	other := sql.OpenDB(d.Unhurried) // whose connections wait for a response without a limit of their own
	defer other.Close()
	open, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	readOnly(b, 1)
	if err := usual.QueryRowContext(t.Context(), "SELECT 1").Scan(new(int)); sqldb.Classify(err) != sqldb.ReadOnly {
		t.Errorf("a read, which may lack what another host has stored: %v", err)
	}
	if _, err := open.ExecContext(t.Context(), "CREATE TABLE t (n INT)"); sqldb.Classify(err) != sqldb.ReadOnly {
		t.Errorf("a write: %v", err)
	}
	_, err = usual.ExecContext(t.Context(), "CREATE TABLE t (n INT)")
	for _, m := range []*testbed.MariaDB{a, b} {
		if err == nil || sqldb.Classify(err) != sqldb.ReadOnly || !sqldb.Unreachable(err) || !strings.Contains(err.Error(), m.Addr()+": Error 1290") {
			t.Errorf("no writer: %v", err)
		}
	}
	readOnly(a, 0)
	leadsSoonTo(t, single, a) // though its open connection has met no refusal
	leadsTo(t, usual, a)

	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	readOnly(b, 0)
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := other.PingContext(soon); err != nil {
		t.Fatalf("the next host after a paused one: %v", err)
	}
	leadsTo(t, other, b)
	leadsTo(t, usual, b)
	if err := a.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, hosts := range []string{a.Addr() + "," + b.Addr(), b.Addr() + "," + a.Addr()} {
		if _, err := sqldb.Open(t.Context(), "mysql://seller@"+hosts+"/shop", sqldb.AccessCreate); err != nil {
			t.Errorf("%s with %s gone: %v", hosts, a.Addr(), err)
		}
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	_, err = sqldb.Open(ctx, "mysql://seller@127.0.0.1:1,"+a.Addr()+"/shop", sqldb.AccessCreate)
	if err == nil || !sqldb.Unreachable(err) || !strings.Contains(err.Error(), "127.0.0.1:1: dial") || !strings.Contains(err.Error(), a.Addr()+": dial") {
		t.Errorf("both gone: %v", err)
	}
}

// Behind one address, a server that is read-only is not read, over connections from before or new ones, as its successor may have more. What
// only reads may read there.
func TestReadsFollowTheWriterBehindOneAddress(t *testing.T) {
	t.Parallel()
	a, b := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{}), testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	seller(t, a, b)
	proxy := testbedtest.StartProxy(t, a.Addr())
	open := func(access sqldb.Access) *sql.DB {
		d, err := sqldb.Open(t.Context(), "mysql://seller@"+proxy.Addr()+"/shop", access)
		if err != nil {
			t.Fatal(err)
		}
		pool := sql.OpenDB(d.Usual)
		t.Cleanup(func() { _ = pool.Close() })
		pool.SetMaxOpenConns(8)
		pool.SetMaxIdleConns(8)
		return pool
	}
	many := func(read func()) {
		var readers sync.WaitGroup
		for range 32 {
			readers.Go(read)
		}
		readers.Wait()
	}
	sells, reads := open(sqldb.AccessChange), open(sqldb.AccessRead)
	many(func() { leadsTo(t, sells, a) })
	many(func() { leadsTo(t, reads, a) })
	testbedtest.Exec(t, a, "SET GLOBAL read_only = 1")
	for range 2 {
		many(func() {
			var port string
			if err := sells.QueryRowContext(t.Context(), "SELECT @@port").Scan(&port); sqldb.Classify(err) != sqldb.ReadOnly {
				t.Errorf("read at a read-only server: %s, %v", port, err)
			}
		})
		many(func() { leadsTo(t, reads, a) })
	}
	proxy.Lead(b.Addr()) // and open connections stay
	many(func() { leadsSoonTo(t, sells, b) })
}

func leadsTo(t *testing.T, pool *sql.DB, to *testbed.MariaDB) {
	t.Helper()
	var port string
	if err := pool.QueryRowContext(t.Context(), "SELECT @@port").Scan(&port); err != nil || !strings.HasSuffix(to.Addr(), ":"+port) {
		t.Errorf("port %s, want %s; %v", port, to.Addr(), err)
	}
}

// Hosts with different engines, or of a user whose writes a read-only server accepts, are refused with what to change.
func TestHostsThatCannotReplaceEachOther(t *testing.T) {
	t.Parallel()
	a := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	b := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"version": "8.4.0"}}) // as MySQL says
	url := seller(t, a, b)
	root := strings.Replace(url, "seller@", "root@", 1)
	for url, want := range map[string]string{
		url:  a.Addr() + " is mariadb, and " + b.Addr() + " is mysql: all hosts must have one engine",
		root: a.Addr() + ": the user has SUPER or READ_ONLY ADMIN",
	} {
		if _, err := sqldb.Open(t.Context(), url, sqldb.AccessCreate); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A user who may write to a read-only server is refused, whatever his name, and if a default role has the right.
func TestUserWhoWritesToAReadOnlyHostIsRefused(t *testing.T) {
	t.Parallel()
	a := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	url := seller(t, a) // with all rights in one database
	for _, statement := range []string{
		"CREATE ROLE boss", "GRANT READ_ONLY ADMIN ON *.* TO boss", "CREATE ROLE chief", "GRANT boss TO chief",
		"CREATE USER super", "GRANT RELOAD, SUPER ON *.* TO super", "CREATE USER 'a@b'", "GRANT READ_ONLY ADMIN, PROCESS ON *.* TO 'a@b'",
		"CREATE USER once", "GRANT boss TO once", "CREATE USER usual", "GRANT chief TO usual", "SET DEFAULT ROLE chief FOR usual",
		"GRANT SELECT ON shop.* TO super, 'a@b', once, usual",
	} {
		if _, err := testbedtest.OpenSQL(t, a.URL()).ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	for user, refused := range map[string]bool{"seller": false, "once": false, "super": true, "a%40b": true, "usual": true, "root": true} {
		url := strings.Replace(strings.Replace(url, "seller@", user+"@", 1), "/shop", ",127.0.0.1:1/shop", 1)
		_, err := sqldb.Open(t.Context(), url, sqldb.AccessChange)
		if refused != (err != nil && strings.Contains(err.Error(), "the user has SUPER or READ_ONLY ADMIN")) || !refused && err != nil {
			t.Errorf("%s: %v, want refused %v", user, err, refused)
		}
	}
}

// leadsSoonTo expects a read at a server after refusals: hosts that have refused are not asked all the time.
func leadsSoonTo(t *testing.T, pool *sql.DB, to *testbed.MariaDB) {
	t.Helper()
	testbedtest.Eventually(t, "a read", func() bool {
		var port string
		err := pool.QueryRowContext(t.Context(), "SELECT @@port").Scan(&port)
		if err != nil && sqldb.Classify(err) != sqldb.ReadOnly || err == nil && !strings.HasSuffix(to.Addr(), ":"+port) {
			t.Errorf("read at port %s, want %s; %v", port, to.Addr(), err)
		}
		return err == nil
	})
}
