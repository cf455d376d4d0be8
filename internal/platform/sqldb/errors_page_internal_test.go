package sqldb

import (
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// names are those of classes in docs/reference/errors-of-stores.md.
var names = map[Class]string{
	Duplicate: "duplicate", NoSchema: "no schema", Repeated: "repeated", Denied: "denied", Full: "full", Conflict: "conflict",
	RowLocked: "row locked", Late: "late", ReadOnly: "read only", Starting: "starting", Stopping: "stopping", Lost: "lost",
}

// answer is what a caller does about errors of a class, in the words of the page.
func answer(c Class) string {
	switch {
	case c >= Stopping:
		return "outcome unknown"
	case c >= ReadOnly:
		return "broken connection"
	case c >= Conflict:
		return "try again"
	}
	return "refused for good"
}

// docs/reference/errors-of-stores.md lists the class of each error, and marks the errors that a test provokes on the
// server itself.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/reference/errors-of-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	provoked, err := os.ReadFile("provoke_test.go")
	if err != nil {
		t.Fatal(err)
	}
	ofGalera, err := os.ReadFile("galera_test.go")
	if err != nil {
		t.Fatal(err)
	}
	ofPostgres, err := os.ReadFile("postgres_test.go")
	if err != nil {
		t.Fatal(err)
	}
	states := make(map[string]Class)
	for _, m := range regexp.MustCompile(`(?m)^\| PostgreSQL \| (\w+) \| [^|]+ \| ([^|]+) \| ([^|]+) \| (yes|no) \|$`).FindAllStringSubmatch(string(text), -1) {
		class := Classify(&pgconn.PgError{Code: m[1]})
		found := strings.Contains(string(ofPostgres), `"`+m[1]+`": {sqldb.`)
		if states[m[1]] = class; m[2] != answer(class) || m[3] != names[class] || found != (m[4] == "yes") {
			t.Errorf("the page has %q; the code %s, %s; provoked: %v", m[0], answer(class), names[class], found)
		}
	}
	if !maps.Equal(states, postgresClasses) {
		t.Errorf("the page has %v of PostgreSQL, the code %v", states, postgresClasses)
	}
	server, file := make(map[uint16]bool), make(map[int]bool)
	row := regexp.MustCompile(`(?m)^\| (MariaDB, MySQL|MariaDB|MySQL|SQLite) \| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \| (yes|no) \|$`)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		number, _ := strconv.Atoi(m[2])
		class, of := sqliteClasses[number], `\{`+m[2]+`, sqldb\.`
		if m[1] == "SQLite" {
			file[number] = true
		} else {
			class, of = Classify(&mysql.MySQLError{Number: uint16(number)}), `(?m)^\t+`+m[2]+`: +\{sqldb\.|e\.Number != `+m[2]+` \|\| !sqldb\.Is\(`
			server[uint16(number)] = true
		}
		if m[3] != answer(class) || m[4] != names[class] {
			t.Errorf("%s %d: the page has %s, %s; the code has %s, %s", m[1], number, m[3], m[4], answer(class), names[class])
		}
		if found := regexp.MustCompile(of).Match(append(provoked, ofGalera...)); found != (m[5] == "yes") {
			t.Errorf("%s %d: provoked: %v; the page has %s", m[1], number, found, m[5])
		}
	}
	for number := range mysqlClasses {
		if !server[number] {
			t.Errorf("the page lacks %d of MariaDB and MySQL", number)
		}
	}
	for code := range sqliteClasses {
		if !file[code] {
			t.Errorf("the page lacks %d of SQLite", code)
		}
	}
	for _, s := range sqliteTexts {
		if !strings.Contains(string(text), s.part) {
			t.Errorf("the page lacks %q of SQLite", s.part)
		}
	}
	if len(server) != len(mysqlClasses) || len(file) != len(sqliteClasses) {
		t.Errorf("the page has %d and %d errors, the code %d and %d", len(server), len(file), len(mysqlClasses), len(sqliteClasses))
	}
}
