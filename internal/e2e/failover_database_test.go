package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestSwitchOverInMidSale switches the database over and back by the statements of docs/how-to/switch-the-database.md, with
// connections to the old server left open. Orders of each SKU are placed again within 3 s, and those that were acknowledged
// are all there. Then one host is down, for the instance that runs and for another one that starts.
func TestSwitchOverInMidSale(t *testing.T) {
	t.Parallel()
	a, b := testbedtest.StartReplicated(t)
	database := fmt.Sprintf("mysql://seller:secret@%s,%s/%s", a.Addr(), b.Addr(), testbed.DefaultDatabase)
	in := start(t, "--database", database)
	s := newMidSale(t, []*instance{in}, "conditional", "for-update", "sql", "sql-cohort")
	for _, servers := range [][2]*testbed.MariaDB{{a, b}, {b, a}} {
		s.placesAll(t)
		promoted := switchOver(t, servers[0], servers[1])
		s.placesAll(t)
		took := s.resumed(promoted)
		if took > 3*time.Second && s.stalls.total() == 0 {
			t.Errorf("a SKU was sold again %v after the switch-over", took)
		}
		t.Logf("each SKU was sold again %v after the switch-over", took.Round(time.Millisecond))
	}
	s.stop()
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if lost := s.holds(t, a.URL(), database); len(lost) > 0 {
		t.Errorf("%d acknowledged orders are lost, such as %v", len(lost), lost[0])
	}
	for _, database := range []string{database, fmt.Sprintf("mysql://seller:secret@%s,%s/%s", b.Addr(), a.Addr(), testbed.DefaultDatabase)} {
		buyer := start(t, "--database", database, "--instance", "later")
		buyer.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"conditional"`, 1))
	}
	in.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"conditional"`, 1))
}

// switchOver executes the page. It returns when the new server has begun to accept writes.
func switchOver(t *testing.T, old, successor *testbed.MariaDB) (promoted time.Time) {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/switch-the-database.md")
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(successor.Addr())
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile("(?m)^\\| \\d \\| (old|new) \\| `([^`]+)`").FindAllStringSubmatch(string(page), -1)
	if len(steps) != 9 {
		t.Fatalf("the page has %d steps", len(steps))
	}
	position := ""
	for _, step := range steps {
		server := old
		if step[1] == "new" {
			server = successor
		}
		statement := strings.NewReplacer("'POSITION'", "'"+position+"'", "'HOST'", "'"+host+"'", "=PORT", "="+port, "'USER'", "'root'", "'PASSWORD'", "''").Replace(step[2])
		db := testbedtest.OpenSQL(t, server.URL())
		switch failed := 0; {
		case strings.Contains(statement, "gtid_binlog_pos"):
			err = db.QueryRowContext(t.Context(), statement).Scan(&position)
		case strings.HasPrefix(statement, "SELECT"):
			if err = db.QueryRowContext(t.Context(), statement).Scan(&failed); failed != 0 {
				t.Fatalf("%s: %d", statement, failed)
			}
		default:
			_, err = db.ExecContext(t.Context(), statement)
		}
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if strings.Contains(statement, "read_only = 0") {
			promoted = time.Now()
		}
	}
	return promoted
}
