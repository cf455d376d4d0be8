package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
)

// A connection of Ping is cut: during a request, while nobody uses it, by the server, or without notice. The database
// works all the time, so Ping succeeds, and does not wait for the driver's time limit of 3 s.
func TestPingSurvivesACutConnection(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	raw := rawDB(t, database)
	kill := func(t testing.TB) {
		t.Helper()
		var sessions []int64
		rows, err := raw.QueryContext(t.Context(), "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			sessions = append(sessions, id)
		}
		if len(sessions) == 0 || rows.Err() != nil {
			t.Fatalf("%d sessions, %v", len(sessions), rows.Err())
		}
		for _, id := range sessions {
			_, err := raw.ExecContext(t.Context(), fmt.Sprint("KILL ", id))                              // in which MySQL takes no argument
			if e, ok := errors.AsType[*mysql.MySQLError](err); err != nil && (!ok || e.Number != 1094) { // a session of the last case may have ended meanwhile
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		cut  func(t testing.TB, p *testbed.Proxy)
	}{
		{"the reply is lost", func(_ testing.TB, p *testbed.Proxy) { p.DropReply("") }},
		{"the server ends the session", func(t testing.TB, _ *testbed.Proxy) { kill(t) }},
		{"a firewall drops it without notice", func(_ testing.TB, p *testbed.Proxy) { p.Silence() }},
		{"it is closed while idle", func(t testing.TB, p *testbed.Proxy) {
			p.Refuse()
			if err := p.Pass(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, p := behindProxy(t, database)
			s := opened(t, sqlstore.Config{URL: address, Instance: "one", Connections: 4})
			testbedtest.Steady(t, func(t testing.TB) {
				if err := s.Ping(t.Context()); err != nil { // the pool has a connection
					t.Fatal(err)
				}
				c.cut(t, p)
				for range 3 {
					began := time.Now()
					if err := s.Ping(t.Context()); err != nil || time.Since(began) > 2500*time.Millisecond {
						t.Errorf("%v after %v", err, time.Since(began))
					}
				}
			})
		})
	}
}

// A database that refuses or swallows new connections as well is unavailable.
func TestPingFailsWithoutADatabase(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	ping := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return s.Ping(ctx)
	}
	p.Refuse()
	if err := ping(time.Minute); !sqldb.Unreachable(err) {
		t.Errorf("refused: %v", err)
	}
	if err := p.Pass(); err != nil {
		t.Fatal(err)
	}
	if err := ping(time.Minute); err != nil {
		t.Errorf("passing again: %v", err)
	}
	p.BlackHole()
	began := time.Now()
	if err := ping(time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("black hole: %v after %v", err, time.Since(began))
	}
}

// A database may answer and yet store no order: its schema is old, or its user may read only.
func TestReadyAsksWhatAnOrderNeeds(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
	as := func(user, rights string) *sqlstore.Store {
		execAt(t, server, "CREATE USER "+user, "GRANT "+rights+" ON shop.* TO "+user)
		return opening(t, "mysql://"+user+"@"+server.Addr()+"/"+testbed.DefaultDatabase)
	}
	reader := as("reader", "SELECT")
	for _, s := range []*sqlstore.Store{reader, opening(t, "sqlite:"+t.TempDir()+"/shop.db")} {
		if ping, ready := s.Ping(t.Context()), s.Ready(t.Context()); ping != nil || !errors.Is(ready, sqlstore.ErrNoSchema) {
			t.Errorf("without a schema: ping %v, ready %v", ping, ready)
		}
	}
	s := open(t, server.URL(), "one")
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	for rights, s := range map[string]*sqlstore.Store{
		"SELECT": reader, "SELECT, INSERT": as("inserter", "SELECT, INSERT"), "SELECT, UPDATE": as("updater", "SELECT, UPDATE"),
	} {
		if ping, ready := s.Ping(t.Context()), s.Ready(t.Context()); ping != nil || sqldb.Classify(ready) != sqldb.Denied {
			t.Errorf("as a user with %s only: ping %v, ready %v", rights, ping, ready)
		}
	}
}

// opening returns a store without changing the database.
func opening(t *testing.T, url string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
