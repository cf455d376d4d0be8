package testbedtest

import (
	"database/sql"
	"testing"
)

// RecordTerms has a MariaDB write down each transaction of a leader.
func RecordTerms(t testing.TB, db *sql.DB) {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE history (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, term BIGINT NOT NULL, entry VARCHAR(255) NOT NULL)",
		"CREATE TRIGGER history AFTER UPDATE ON cluster_leaders FOR EACH ROW INSERT INTO history (term, entry) VALUES (NEW.token, NEW.entry)",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// RecordedTerms checks that each term has one leader, and that none comes back after a later one.
func RecordedTerms(t testing.TB, db *sql.DB) (terms, works int) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT term, entry FROM history ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	type work struct {
		term  int64
		entry string
	}
	var last work
	for rows.Next() {
		var now work
		if err := rows.Scan(&now.term, &now.entry); err != nil {
			t.Fatal(err)
		}
		works++
		switch {
		case now.term < last.term, now.term == last.term && now.entry != last.entry:
			t.Errorf("term %d of %s is at work after term %d of %s", now.term, now.entry, last.term, last.entry)
		case now.term > last.term:
			terms++
		}
		last = now
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return terms, works
}
