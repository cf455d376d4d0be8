package testbedtest

import (
	"database/sql"
	"testing"
)

// RecordTerms has a MariaDB write down each transaction of a leader.
func RecordTerms(t testing.TB, db *sql.DB) {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE history (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, duty VARCHAR(128) NOT NULL, term BIGINT NOT NULL, owner VARCHAR(255) NOT NULL)",
		"CREATE TRIGGER history AFTER UPDATE ON terms FOR EACH ROW INSERT INTO history (duty, term, owner) VALUES (NEW.duty, NEW.term, NEW.owner)",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// RecordedTerms checks that of each duty each term has one owner, and that none comes back after a
// later one.
func RecordedTerms(t testing.TB, db *sql.DB) (terms, works int) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT duty, term, owner FROM history ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	type work struct {
		term  int64
		owner string
	}
	last := make(map[string]work)
	for rows.Next() {
		var duty string
		var now work
		if err := rows.Scan(&duty, &now.term, &now.owner); err != nil {
			t.Fatal(err)
		}
		works++
		before, done := last[duty]
		switch {
		case now.term < before.term, now.term == before.term && now.owner != before.owner:
			t.Errorf("%s: term %d of %s is at work after term %d of %s", duty, now.term, now.owner, before.term, before.owner)
		case !done || now.term > before.term:
			terms++
		}
		last[duty] = now
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return terms, works
}
