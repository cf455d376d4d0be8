//go:build unix

package testbed

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// supported says whether servers can be guarded and signalled here.
const supported = true

// ownGroup keeps the terminal's interrupt from the command, and lets everything
// that it starts be killed together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// killGroup must be called before the process is reaped.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // No such group: nothing is left to kill.
}

// pause returns after the system has confirmed that the process is stopped:
// the signal alone leaves threads on other processors running for a moment.
func pause(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err == nil && !status.Stopped() {
			return os.ErrProcessDone
		}
		return err
	}
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
