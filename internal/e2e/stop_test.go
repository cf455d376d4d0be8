package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A healthy instance that is asked to stop exits with 0, whatever does not respond or is cut at the end, and however early it is asked.
func TestStopIsNoFailure(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for name, collector := range map[string]string{"collector is away": "127.0.0.1:1", "collector is silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := launchIn(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + collector}, program, "--database", "sqlite:"+t.TempDir()+"/shop.db")
			in.listens(t)
			in.stop()
			in.stopped(t)
			if !strings.Contains(in.stderr.String(), "not closed in order") {
				t.Errorf("the collector that is gone is not logged: %s", in.stderr)
			}
		})
	}
	for flag, address := range map[string]string{"database": "mysql://seller:secret@%s/shop", "redis": "redis://%s/0", "zookeeper": "%s", "etcd": "%s"} {
		t.Run("during the start, while it waits for "+flag, func(t *testing.T) {
			t.Parallel()
			store, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			must(t, err)
			defer store.Close()
			in := launch(t, "--database", "sqlite:"+t.TempDir()+"/shop.db", "--"+flag, fmt.Sprintf(address, store.Addr()))
			go func() {
				_, _ = io.Copy(io.Discard, in.stdout) // it may have begun to serve
				store.Close()
			}()
			asked, err := store.Accept() // and never answers
			must(t, err)
			defer asked.Close()
			in.stop()
			in.stopped(t)
		})
	}
	t.Run("the server cuts all connections", func(t *testing.T) {
		t.Parallel()
		database := testbedtest.Database(t)
		db := testbedtest.OpenSQL(t, database)
		in := launch(t, "--database", database)
		in.listens(t)
		in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":10,"strategy":"sql"}`)
		in.place(t)
		in.stop()
		testbedtest.Eventually(t, "it drains", func() bool { return strings.Contains(in.stderr.String(), `"msg":"draining"`) })
		for cut := 0; ; <-time.After(50 * time.Millisecond) {
			select {
			case <-in.exited:
				if in.stopped(t); cut == 0 {
					t.Error("it had no connection")
				}
				return
			default:
				cut += cutAll(t, db)
			}
		}
	})
}

// cutAll ends all other connections to a database, as an operator or an idle limit does. It returns how many there were.
func cutAll(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	var ids sql.NullString
	const others = "SELECT GROUP_CONCAT(id) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
	must(t, db.QueryRowContext(t.Context(), others).Scan(&ids))
	for id := range strings.FieldsFuncSeq(ids.String, func(r rune) bool { return r == ',' }) {
		_, err := db.ExecContext(t.Context(), "KILL "+id)
		if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 1094 { // it has ended by itself
			must(t, err)
		}
		n++
	}
	return n
}

// TestStopWhileRedisBreaks: orders are placed and expire all the time, and Redis no longer answers. An instance that is asked to stop
// exits with 0. The next one expires what is left.
func TestStopWhileRedisBreaks(t *testing.T) {
	t.Parallel()
	database, redis := testbedtest.Database(t), testbedtest.StartRedis(t, testbed.RedisConfig{})
	flags := []string{"--database", database, "--redis", redis.URL(), "--order-ttl", "2s"}
	in, client := launch(t, flags...), customers(t)
	in.listens(t)
	skus := []string{"conditional", "redis", "redis-cohort", "lua"}
	for _, sku := range skus {
		in.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":100000,"strategy":"`+sku+`"}`)
	}
	buying, leave := context.WithCancel(t.Context())
	defer leave()
	var buyers sync.WaitGroup
	for i := range 2 * len(skus) {
		buyers.Go(func() {
			for n := i; buying.Err() == nil; n++ {
				purchase(buying, client, in.url, skus[n%len(skus)])
				<-time.After(50 * time.Millisecond)
			}
		})
	}
	db := testbedtest.OpenSQL(t, database)
	count := func(where string) (n int) {
		must(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE status "+where+" 'EXPIRED'").Scan(&n))
		return n
	}
	testbedtest.Eventually(t, "orders expire", func() bool { return count("=") > 20 })
	must(t, redis.Pause())
	<-time.After(500 * time.Millisecond) // others are due
	in.stop()
	in.stopped(t)
	leave()
	buyers.Wait()
	t.Logf("%d orders have expired, and %d have not", count("="), count("<>"))
	must(t, redis.Resume())
	start(t, flags...)
	testbedtest.Eventually(t, "all orders have expired", func() bool { return count("<>") == 0 })
	store := books(t, database)
	for _, sku := range skus {
		balanced(t, store, sku)
	}
}
