package e2e_test

import (
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestSwitchOverInMidSale switches the database over and back by the statements of docs/how-to/switch-the-database.md, with
// connections to the old server left open. Orders of each SKU are placed again within 3 s, or later if the new writer is slow to
// accept connections. Those that were acknowledged are all there. Then one host is down, for the instance that runs and for another one that starts.
func TestSwitchOverInMidSale(t *testing.T) {
	t.Parallel()
	servers := testbedtest.StartReplicated(t, 2, nil)
	a, b := servers[0], servers[1]
	database := fmt.Sprintf("mysql://seller:secret@%s,%s/%s", a.Addr(), b.Addr(), testbed.DefaultDatabase)
	in := start(t, "--database", database)
	s := newMidSale(t, []*instance{in}, "conditional", "for-update", "sql", "sql-cohort")
	for _, servers := range [][2]*testbed.MariaDB{{a, b}, {b, a}} {
		s.placesAll(t)
		promoted := switchOver(t, servers[0], servers[1])
		s.placesAll(t)
		took := s.resumed(promoted)
		if took > follows && took > follows+s.opening(t, database)+s.stalls.total() {
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

// switchOver executes the table of the page. It returns when the new server has begun to accept writes.
func switchOver(t *testing.T, old, successor *testbed.MariaDB) (promoted time.Time) {
	t.Helper()
	return procedure(t, "Switch", map[string][]*testbed.MariaDB{"old": {old}, "new": {successor}})
}

// promote executes the table of the page for a writer that has failed. It returns the replica that is the writer now, and the other.
func promote(t *testing.T, replicas []*testbed.MariaDB, confirmed bool) (writer, other *testbed.MariaDB) {
	t.Helper()
	servers := map[string][]*testbed.MariaDB{"replicas": replicas}
	if confirmed {
		servers["semi-synchronous"] = nil
	}
	procedure(t, "Promote a replica", servers)
	return servers["new"][0], servers["others"][0]
}

// stepsOf returns the servers and statements in the table of a section of a page below docs/how-to.
func stepsOf(t *testing.T, name, section string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/" + name)
	must(t, err)
	_, text, _ := strings.Cut(string(page), "## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	steps := regexp.MustCompile("(?m)^\\| \\d+ \\| (\\w+) \\| `([^`]+)`").FindAllStringSubmatch(text, -1)
	if len(steps) < 8 {
		t.Fatalf("the page has %d steps", len(steps))
	}
	return steps
}

// procedure executes the table of a section of docs/how-to/switch-the-database.md.
func procedure(t *testing.T, section string, servers map[string][]*testbed.MariaDB) (promoted time.Time) {
	t.Helper()
	position := ""
	for _, step := range stepsOf(t, "switch-the-database.md", section) {
		if step[2] == "SHOW SLAVE STATUS" {
			position = latest(t, servers)
			continue
		}
		if _, confirmed := servers["semi-synchronous"]; strings.Contains(step[2], "semi_sync") && !confirmed {
			continue
		}
		for _, server := range servers[step[1]] {
			var err error
			host, port := "", ""
			if successor := servers["new"]; len(successor) > 0 {
				host, port, err = net.SplitHostPort(successor[0].Addr())
				must(t, err)
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
	}
	return promoted
}

// latest finds the replica that has received most. It is new, and the rest are others.
func latest(t *testing.T, servers map[string][]*testbed.MariaDB) (position string) {
	t.Helper()
	most := -1
	for _, r := range servers["replicas"] {
		at := slaveStatus(t, r)["Gtid_IO_Pos"]
		n, err := strconv.Atoi(at[strings.LastIndex(at, "-")+1:])
		must(t, err)
		if n > most {
			most, position = n, at
			servers["new"] = []*testbed.MariaDB{r}
		}
	}
	servers["others"] = slices.DeleteFunc(slices.Clone(servers["replicas"]), func(r *testbed.MariaDB) bool { return r == servers["new"][0] })
	return position
}

// slaveStatus returns what a replica says of its replication.
func slaveStatus(t *testing.T, m *testbed.MariaDB) map[string]string {
	t.Helper()
	rows, err := testbedtest.OpenSQL(t, m.URL()).QueryContext(t.Context(), "SHOW SLAVE STATUS")
	must(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	must(t, err)
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	is := make(map[string]string)
	for rows.Next() {
		must(t, rows.Scan(into...))
	}
	must(t, rows.Err())
	for i, name := range names {
		is[name] = values[i].String
	}
	return is
}

// An error of the database that has no class refuses the order with status 500. The log has its number, and the response does not.
func TestErrorWithoutClassIsLoggedWithItsNumber(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	r := start(t, "--database", database)
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":9,"strategy":"conditional"}`)
	const fault = "CREATE TRIGGER fault BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a trigger'"
	if _, err := testbedtest.OpenSQL(t, database).ExecContext(t.Context(), fault); err != nil {
		t.Fatal(err)
	}
	body := r.want(t, http.StatusInternalServerError, "POST", "/api/v1/orders", oneUnit)
	logged := regexp.MustCompile(`"level":"ERROR","msg":"request refused",[^\n]*Error 1644 \(45000\): a trigger`)
	testbedtest.Eventually(t, "the log has the number", func() bool { return logged.MatchString(r.stderr.String()) })
	if strings.Contains(body, "1644") || strings.Contains(body, "trigger") {
		t.Errorf("the response is %s", body)
	}
}
