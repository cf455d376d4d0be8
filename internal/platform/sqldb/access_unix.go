//go:build unix

package sqldb

import (
	"io/fs"
	"syscall"
)

// writable returns an error if this process may not write to a file or a folder.
func writable(path string) error {
	const write = 2 // W_OK
	if err := syscall.Access(path, write); err != nil {
		return &fs.PathError{Op: "write to", Path: path, Err: err}
	}
	return nil
}
