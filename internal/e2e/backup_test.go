package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestBackupDuringASale backs up a database and restores it by the commands of docs/how-to/back-up.md, each order of a sale alongside. The copy has
// all that was acknowledged before the command, nothing that was not ordered, and no half of an order. Instances sell on from it with the Redis of the
// sale: tokens are higher than those of the sale, and the open orders of the copy expire.
func TestBackupDuringASale(t *testing.T) {
	t.Parallel()
	for engine, database := range map[string]func(tb testing.TB) string{
		"MariaDB": testbedtest.Database, "PostgreSQL": testbedtest.Postgres,
		"SQLite": func(tb testing.TB) string { tb.Helper(); return "sqlite:" + filepath.Join(tb.TempDir(), "shop.db") },
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine != "MariaDB" {
				testbedtest.FullSize(t)
			}
			backUpDuringASale(t, engine, database)
		})
	}
}

func backUpDuringASale(t *testing.T, engine string, database func(testing.TB) string) {
	t.Helper()
	sold, copied, folder := database(t), database(t), t.TempDir()
	flags := []string{"--redis", ownRedis(t), "--order-ttl", "10s", "--database"}
	skus := []string{"conditional", "lua", "redis-cohort", "sql-cohort"}
	in := start(t, append(flags, sold)...)
	s := newMidSale(t, []*instance{in}, skus...)
	s.placesAll(t)
	began := time.Now()
	copies(t, folder, engine, "back up", sold)
	ended := time.Now()
	s.placesAll(t)
	s.stop()
	if lost := s.holds(t, sold, sold); len(lost) > 0 {
		t.Errorf("%d orders are lost by the backup", len(lost))
	}
	before := make(map[string]int64)
	for _, sku := range skus {
		before[sku] = token(t, in, sku)
	}
	in.stop()
	in.stopped(t)

	copies(t, folder, engine, "restore", copied)
	s.lossy = true
	alongside, early := 0, 0
	for _, r := range s.holds(t, copied, copied) {
		if r.at.Before(began) {
			early++
		}
	}
	if early > 0 {
		t.Errorf("the copy lacks %d orders or payments that were acknowledged before the backup began", early)
	}
	for _, r := range s.orders {
		if r.at.After(began) && r.at.Before(ended) {
			alongside++
		}
	}
	stored := storedOrders(t, copied)
	for _, o := range stored {
		if s.orders[o.id].customer != o.customer {
			t.Errorf("no customer has order %+v", o)
		}
	}
	t.Logf("the backup took %v, %d orders were acknowledged meanwhile, and %d of %d are in it", ended.Sub(began), alongside, len(stored), len(s.orders))

	in = start(t, append(flags, copied)...)
	for _, sku := range skus {
		if a := served(t.Context(), s.client, in.url, sku); a.status != http.StatusCreated {
			t.Error(a)
		}
		if now := token(t, in, sku); strings.HasSuffix(sku, "-cohort") && (before[sku] == 0 || now <= before[sku]) {
			t.Errorf("%s: token %d after token %d", sku, now, before[sku])
		}
	}
	testbedtest.Eventually(t, "no order of the copy is open", func() bool {
		for _, o := range storedOrders(t, copied) {
			if o.status == "PENDING" {
				return false
			}
		}
		return true
	})
	shows(t, []string{"audit", "--full", "--database", copied}, "sql-cohort", "ok")
}

// token returns the fencing token that the row of a SKU has accepted.
func token(t *testing.T, in *instance, sku string) int64 {
	t.Helper()
	var level struct{ Fence int64 }
	if err := json.Unmarshal([]byte(in.want(t, http.StatusOK, "GET", "/api/v1/skus/"+sku, "")), &level); err != nil {
		t.Fatal(err)
	}
	return level.Fence
}

// copies executes a command of the table in docs/how-to/back-up.md for a database, in a folder.
func copies(t *testing.T, folder, engine, column, database string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/back-up.md")
	must(t, err)
	row := regexp.MustCompile("(?m)^\\| " + engine + " \\| `([^`]+)` \\| `([^`]+)` \\|$").FindStringSubmatch(string(page))
	if row == nil {
		t.Fatalf("the page has no commands for %s", engine)
	}
	command := row[map[string]int{"back up": 1, "restore": 2}[column]]
	if file, ok := strings.CutPrefix(database, "sqlite:"); ok {
		if statement, ok := strings.CutPrefix(command, "sqlite3 FILE "); ok { // which need not be installed
			statement = strings.ReplaceAll(strings.Trim(statement, `"`), "shop.copy", filepath.Join(folder, "shop.copy"))
			_, err := testbedtest.OpenSQL(t, database).ExecContext(t.Context(), statement)
			must(t, err)
			return
		}
		command = strings.ReplaceAll(command, "FILE", file)
	} else {
		u, err := url.Parse(database)
		must(t, err)
		command = strings.NewReplacer("USER", u.User.Username(), "HOST", u.Hostname(), "PORT", u.Port(), "DB", u.Path[1:]).Replace(command)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", command)
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}
