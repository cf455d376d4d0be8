package testbedtest_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestSharedServers(t *testing.T) {
	t.Setenv("SHOP_TEST_REDIS", "")
	t.Setenv("SHOP_TEST_DATABASE", "")
	if first, second := testbedtest.Redis(t), testbedtest.Redis(t); first != second {
		t.Errorf("two Redis servers: %s and %s", first, second)
	}
	first, second := parse(t, testbedtest.Database(t)), parse(t, testbedtest.Database(t))
	if first.Host != second.Host || first.Path == second.Path {
		t.Errorf("got %s and %s, want one server and two databases", first, second)
	}
}

func TestNamedServers(t *testing.T) {
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	admin, err := sql.Open("mysql", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, s := range []string{"CREATE USER u@127.0.0.1 IDENTIFIED BY 'p@ss/w'", "GRANT ALL ON *.* TO u@127.0.0.1"} {
		if _, err := admin.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SHOP_TEST_DATABASE", "mysql://u:p%40ss%2Fw@"+server.Addr()+"/anything")

	var name string
	t.Run("use", func(t *testing.T) {
		u := parse(t, testbedtest.Database(t))
		cfg := mysql.NewConfig()
		cfg.User, cfg.Net, cfg.Addr, cfg.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
		cfg.Passwd, _ = u.User.Password()
		name = cfg.DBName
		db, err := sql.Open("mysql", cfg.FormatDSN())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (n INT)"); err != nil {
			t.Error(err)
		}
	})
	var left int
	err = admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", name).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("database %q: %d left, %v", name, left, err)
	}
}

func TestNamedRedis(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1:6379":            "redis://127.0.0.1:6379/0",
		"redis://u:p@127.0.0.1:1/2": "redis://u:p@127.0.0.1:1/2",
	} {
		t.Setenv("SHOP_TEST_REDIS", given)
		if got := testbedtest.Redis(t); got != want {
			t.Errorf("SHOP_TEST_REDIS=%s: got %s, want %s", given, got, want)
		}
	}
}

func TestMissingServer(t *testing.T) {
	if server, err := func() (*testbed.Redis, error) {
		t.Setenv("PATH", t.TempDir())
		return testbed.StartRedis(t.Context(), testbed.RedisConfig{})
	}(); err == nil {
		server.Close()
		t.Skip("redis-server is in a folder that is searched besides PATH")
	}
	for require, want := range map[string]string{"": "skipped", "0": "skipped", "1": "failed"} {
		t.Setenv("SHOP_TEST_REQUIRE", require)
		fake := &recorder{TB: t}
		done := make(chan struct{})
		go func() { // Skipf and Fatal end the goroutine that calls them.
			defer close(done)
			testbedtest.StartRedis(fake, testbed.RedisConfig{})
		}()
		<-done
		if fake.outcome != want {
			t.Errorf("SHOP_TEST_REQUIRE=%s: %s, want %s", require, fake.outcome, want)
		}
	}
}

func TestDatabaseNeedsURL(t *testing.T) {
	for _, server := range []string{"u:secret@tcp(127.0.0.1:1)/d", "redis://u:secret@127.0.0.1:1", "mysql://u:secret@127.0.0.1:1/d%zz"} {
		t.Setenv("SHOP_TEST_DATABASE", server)
		fake := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			testbedtest.Database(fake)
		}()
		<-done
		if fake.outcome != "failed" || strings.Contains(fake.text, "secret") {
			t.Errorf("%s: %s, %q", server, fake.outcome, fake.text)
		}
	}
}

// recorder is a test that notes how it ended.
type recorder struct {
	testing.TB

	outcome, text string
}

func (r *recorder) Skipf(string, ...any) { r.end("skipped", "") }

func (r *recorder) Fatal(...any) { r.end("failed", "") }

func (r *recorder) Fatalf(format string, args ...any) { r.end("failed", fmt.Sprintf(format, args...)) }

func (r *recorder) end(outcome, text string) {
	r.outcome, r.text = outcome, text
	runtime.Goexit()
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
