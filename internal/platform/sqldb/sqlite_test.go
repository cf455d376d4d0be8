package sqldb_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"example.com/shop/internal/platform/sqldb"
)

// A SQLite file is moved away, or another one takes its place, and it comes back, again and again, while connections are opened. None
// creates an empty file where the path leads, and none reads the other file.
func TestConnectionLeadsToTheFirstFile(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"moved": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "shop.db")
			db := fileWith(t, path, 1)
			fileWith(t, path+".other", 2)
			rename := func(from, to string) {
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
			for range 50 {
				var openers, begun sync.WaitGroup
				for range 4 {
					begun.Add(1)
					openers.Go(func() {
						begin := sync.OnceFunc(begun.Done)
						for err := error(nil); !errors.Is(err, sqldb.ErrMoved); begin() {
							var n int
							if err = db.QueryRowContext(t.Context(), "SELECT n FROM t").Scan(&n); err == nil && n != 1 {
								t.Error("the other file was read")
							}
						}
					})
				}
				begun.Wait()
				rename(path, path+".away")
				if replaced {
					rename(path+".other", path)
				}
				openers.Wait()
				if replaced {
					rename(path, path+".other")
				} else if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("a new file: %v", err)
				}
				rename(path+".away", path)
			}
		})
	}
}

// fileWith creates a file whose table has one number, and returns a database in which each statement opens a connection.
func fileWith(t *testing.T, path string, number int) *sql.DB {
	t.Helper()
	d, err := sqldb.Open(t.Context(), "sqlite:"+path, sqldb.AccessCreate)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(d.Usual)
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(-1)
	for _, statement := range []string{"CREATE TABLE t (n INTEGER)", "INSERT INTO t VALUES (" + strconv.Itoa(number) + ")"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}
