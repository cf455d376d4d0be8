//go:build unix

package measure

import (
	"syscall"
	"time"
)

// OwnCPU returns the processor time that this process, with all clients, has used.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
