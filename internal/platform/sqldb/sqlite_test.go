package sqldb_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"example.com/shop/internal/platform/sqldb"
)

// A SQLite file is moved away and back again and again, while connections are opened. None of them creates an empty file at its
// place, where the path leads later on.
func TestMovedFileIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	d, err := sqldb.Open(t.Context(), "sqlite:"+path, sqldb.AccessCreate)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(d.Usual)
	defer db.Close()
	db.SetMaxIdleConns(-1) // each statement opens a connection
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (a INTEGER)"); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		var openers sync.WaitGroup
		for range 4 {
			openers.Go(func() {
				for err := error(nil); !errors.Is(err, sqldb.ErrMoved); {
					err = db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(new(int))
				}
			})
		}
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		openers.Wait()
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("a new file: %v", err)
		}
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
}
