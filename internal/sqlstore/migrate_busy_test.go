package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"
)

// A file that another process writes to for longer than a session waits delays a migration, and does not fail it.
func TestMigrationWaitsForABusyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	s := open(t, "sqlite:"+file, "one")
	other, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	release := time.AfterFunc(2*time.Second, func() { tx.Rollback() }) // a session waits for one
	defer release.Stop()
	if err := s.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
}
