package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// guardScript reads process group ids, one per line, an empty line meaning none. Other processes may follow in the line.
// When its input ends it kills the last group named, and these processes, and removes the folder $1.
// A dying server may still create a file, hence the repeated removal.
const guardScript = `trap '' HUP INT TERM
pid=
while read -r line; do pid=$line; done
[ -z "$pid" ] || kill -s KILL -- -$pid
for _ in 1 2 3 4 5 6 7 8 9 10; do
	rm -rf -- "$1" && exit 0
	sleep 0.2
done`

// guard is the shell that ends a server when this program can no longer do it. Data in a pipe stays readable after the
// death of the writer, so a line takes effect without an acknowledgement.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// newGuard starts a guard that removes folder at its end.
func newGuard(ctx context.Context, folder string) (*guard, error) {
	if !supported {
		return nil, fmt.Errorf("guard: %w", errors.ErrUnsupported)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", guardScript, "guard", folder)
	ownGroup(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// watch makes the guard responsible for the process group pid, and for other processes, which do not end by themselves.
func (g *guard) watch(pid int, others ...int) error {
	if _, err := fmt.Fprintln(g.pipe, strings.Trim(fmt.Sprint(append([]int{pid}, others...)), "[]")); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// release must come before the server is reaped: from then on, the system may give its process id to another process.
func (g *guard) release() {
	// A guard that is gone kills nobody, which is all that is wanted here.
	_, _ = fmt.Fprintln(g.pipe)
}

// close ends the guard and waits until it has cleaned up.
func (g *guard) close() error {
	_ = g.pipe.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}
