package testbed

import "os"

// Suspend pauses a child process of the caller, as Process.Pause stops a server. It is for tests whose client is a
// process of its own.
func Suspend(p *os.Process) error { return pause(p) }

// Continue ends Suspend.
func Continue(p *os.Process) error { return resume(p) }
