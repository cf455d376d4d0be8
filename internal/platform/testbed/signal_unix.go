//go:build unix

package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// supported says whether servers can be guarded and signalled here.
const supported = true

// ownGroup keeps the terminal's interrupt from the command, and lets everything
// that it starts be killed together.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// killGroup must be called before the process is reaped. Its children may have left the group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGSTOP) // it starts no more of them
	killTree(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL) // No such group: nothing is left to kill.
}

// killTree kills a process, which need not be a child of this one, and its children.
func killTree(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it starts no more of them
	for _, child := range children(pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // No such process: it has ended.
}

// Suspend pauses a child process of the caller, as Process.Pause stops a server. It returns after the system has confirmed that the
// process and its children are stopped: the signal alone leaves threads on other processors running for a moment.
func Suspend(p *os.Process) error {
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
		if err != nil {
			return err
		}
		break
	}
	pauseTree(p.Pid)
	return nil
}

// pauseTree stops a process, which need not be a child of this one, and its children.
func pauseTree(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP) // No such process: it has ended.
	for running(pid) {
		continue
	}
	for _, child := range children(pid) {
		pauseTree(child)
	}
}

// Continue ends Suspend.
func Continue(p *os.Process) error {
	resumeTree(p.Pid)
	return p.Signal(syscall.SIGCONT)
}

// resumeTree ends pauseTree.
func resumeTree(pid int) {
	for _, child := range children(pid) {
		resumeTree(child)
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// children are the processes that a process has started itself, where Linux has a list of them.
func children(of int) (all []int) {
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", of, of))
	for text := range strings.FieldsSeq(string(list)) {
		if pid, err := strconv.Atoi(text); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// running reports whether a process is neither stopped nor at its end.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := bytes.Cut(text, []byte(") "))
	return err == nil && len(state) > 0 && !strings.ContainsRune("TZX", rune(state[0]))
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func interrupt(p *os.Process) error { return p.Signal(syscall.SIGINT) }
