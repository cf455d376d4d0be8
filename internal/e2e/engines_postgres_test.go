package e2e_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/shop/internal/platform/sqldb"
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

// startStandbys starts a writer and two standbys as docs/how-to/use-postgresql.md describes them.
func startStandbys(t *testing.T, synchronous string) *replicas[*testbed.Postgres] {
	t.Helper()
	nodes := make([]*testbed.Postgres, 3)
	for i := range nodes {
		nodes[i] = testbedtest.StartPostgres(t, testbed.PostgresConfig{Of: nodes[0], Vars: map[string]string{"cluster_name": fmt.Sprint("db", i+1)}})
		if i > 0 {
			continue
		}
		for _, setting := range []string{ // in a file, which copies and pg_rewind read
			"synchronous_standby_names = '" + synchronous + "'", "wal_log_hints = on", "restart_after_crash = off", "wal_keep_size = '1GB'", "wal_retrieve_retry_interval = '200ms'",
		} {
			execAt(t, nodes[0], "ALTER SYSTEM SET "+setting)
		}
		must(t, nodes[0].Restart(t.Context()))
	}
	return &replicas[*testbed.Postgres]{
		t: t, all: serversOf("postgres://shop@", nodes), writer: nodes[0], replicas: nodes[1:3:3],
		promote: func(standbys []*testbed.Postgres) (writer, other *testbed.Postgres) {
			return promoteStandby(t, standbys)
		},
		follow: func(old, writer *testbed.Postgres) {
			rewind(t, old, writer)
			must(t, old.Restart(t.Context()))
		},
		disconnect: func(standby *testbed.Postgres) {
			execAt(t, standby, "ALTER SYSTEM SET primary_conninfo = ''")
			execAt(t, standby, "SELECT pg_reload_conf()")
		},
	}
}

func startSynchronous(t *testing.T) *servers {
	t.Helper()
	r := startStandbys(t, "ANY 1 (db1, db2, db3)")
	r.all.faults = r.faults(func() { r.fail(func() error { return r.writer.Stop(t.Context()) }, r.rejoin) })
	return r.all
}

func startAsyncStandbys(t *testing.T) *servers {
	t.Helper()
	return startStandbys(t, "").losing()
}

// promoteStandby executes the table of the page. It returns the standby that is the writer now, and the other one.
func promoteStandby(t *testing.T, standbys []*testbed.Postgres) (writer, other *testbed.Postgres) {
	t.Helper()
	at, latest := map[string][]*testbed.Postgres{"standbys": standbys}, int64(0)
	for _, step := range stepsOf(t, "use-postgresql.md", "Promote a standby") {
		for i, server := range at[step[1]] {
			statement := step[2]
			if writer != nil {
				statement = connectTo(t, statement, writer)
			}
			db := testbedtest.OpenSQL(t, server.URL())
			ask := func(into any) {
				answered(t, statement, func() error { return db.QueryRowContext(t.Context(), statement).Scan(into) })
			}
			switch {
			case strings.Contains(statement, "pg_stat_wal_receiver"):
				testbedtest.Eventually(t, statement, func() bool {
					n := -1
					ask(&n)
					return n == 0
				})
			case strings.Contains(statement, "lsn"):
				var position int64
				if ask(&position); position > latest {
					writer, other, latest = server, standbys[1-i], position
				}
			case strings.Contains(statement, "pg_promote"):
				var promoted bool
				if ask(&promoted); !promoted {
					t.Fatal("no standby was promoted")
				}
			default:
				execAt(t, server, statement)
			}
		}
		at["new"], at["others"] = []*testbed.Postgres{writer}, []*testbed.Postgres{other}
	}
	return writer, other
}

// rewind executes the command of the page for an old writer, which does not run.
func rewind(t *testing.T, old, writer *testbed.Postgres) {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/use-postgresql.md")
	must(t, err)
	m := regexp.MustCompile(`(?m)^(pg_rewind) (.*) --target-pgdata=DATA (--source-server)='(.*)'$`).FindStringSubmatch(string(page))
	must(t, old.Run(t.Context(), m[1], m[2], "--target-pgdata="+old.Data(), m[3]+"="+connectTo(t, m[4], writer)))
}

// connectTo puts a server into the place of the words for it.
func connectTo(t *testing.T, text string, server *testbed.Postgres) string {
	t.Helper()
	host, port, err := net.SplitHostPort(server.Addr())
	must(t, err)
	return strings.NewReplacer("=HOST", "="+host, "=PORT", "="+port, "=USER", "=shop", "=PASSWORD", "=any").Replace(text)
}

func execAt(t *testing.T, server *testbed.Postgres, statement string) {
	t.Helper()
	db := testbedtest.OpenSQL(t, server.URL())
	answered(t, statement, func() error {
		_, err := db.ExecContext(t.Context(), statement)
		return err
	})
}

// answered does what may be done twice until the server answers: in the middle of a sale, a connection may take longer than package sqldb waits.
func answered(t *testing.T, what string, do func() error) {
	t.Helper()
	var err error
	testbedtest.Eventually(t, what, func() bool {
		err = do()
		return err == nil || sqldb.Unchanged(err)
	})
	must(t, err)
}
