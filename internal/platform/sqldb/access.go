package sqldb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Access is what a database is opened for.
type Access int

// The ways to open a database.
const (
	AccessCreate Access = iota // to read and write it; if a SQLite file does not exist, it is created
	AccessChange               // to read and write it; it must exist
	AccessRead                 // to read it; it must exist, and a single server may be read-only
)

// needsWriter reports whether a server must not be read-only: its successor may have what it lacks. Of several hosts, one is the writer.
func (a Access) needsWriter(hosts int) bool { return a != AccessRead || hosts > 1 }

// check returns why SQLite cannot use a file, in the words of the system: SQLite says "out of memory" to all of it. It
// does not open the file: to close that again would end the locks that this process has on it.
func (a Access) check(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a == AccessCreate:
		return checkFolder(file)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: want the name of a file", file)
	case a != AccessRead:
		return errors.Join(writable(file), checkFolder(file))
	}
	if _, err := os.Stat(file + "-shm"); err == nil {
		return nil // somebody has the file open, and has created what SQLite needs alongside it
	}
	return checkFolder(file)
}

// checkFolder returns why no file can be created alongside file.
func checkFolder(file string) error {
	folder := filepath.Dir(file)
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("the folder of %s: %w", file, err)
	}
	if err := writable(folder); err != nil {
		return fmt.Errorf("SQLite keeps files next to %s: %w", file, err)
	}
	return nil
}
