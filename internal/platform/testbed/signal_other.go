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

func pause(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }

func terminate(p *os.Process) error { return p.Kill() }

func interrupt(p *os.Process) error { return p.Kill() }

func children(int) []int { return nil }
