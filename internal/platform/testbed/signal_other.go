//go:build !unix

package testbed

import (
	"errors"
	"os"
	"os/exec"
)

// supported says whether servers can be guarded and signalled here.
const supported = false

func ownGroup(*exec.Cmd) {}

func killGroup(int) {}

func killTree(int) {}

func pauseTree(int) {}

func resumeTree(int) {}

// Suspend is not supported.
func Suspend(*os.Process) error { return errors.ErrUnsupported }

// Continue is not supported.
func Continue(*os.Process) error { return errors.ErrUnsupported }

func terminate(p *os.Process) error { return p.Kill() }

func interrupt(p *os.Process) error { return p.Kill() }

func children(int) []int { return nil }
