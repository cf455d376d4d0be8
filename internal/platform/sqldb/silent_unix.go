//go:build unix

package sqldb

import (
	"errors"
	"net"
	"syscall"
)

// silent reports whether the other end of an idle connection has neither sent anything nor closed it.
func silent(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	waits := false
	err = raw.Control(func(fd uintptr) { // raw.Read would wait for the driver, which may be reading
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		waits = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && waits
}
