package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// outputFile is where a server's standard output and error go, in its folder.
const outputFile = "output.log"

// launchScript holds a child back until it reads a line, and then becomes the program: same process id, no standard
// input.
const launchScript = `read -r _ && exec "$@" </dev/null`

// child is one process that has been started and not yet reaped.
type child struct {
	cmd   *exec.Cmd
	guard *guard
	// gone is the read end of a pipe whose other end only the child holds. It ends with the child. So an exit differs
	// from a slow start without a goroutine that waits, and without reaping.
	gone *os.File
	// paused is guarded by the mutex of the Process.
	paused bool
}

// launch starts path in folder under the guard.
func launch(ctx context.Context, g *guard, folder, path string, args []string) (*child, error) {
	output, err := os.OpenFile(filepath.Join(folder, outputFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	gone, held, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer held.Close()

	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh",
		append([]string{"-c", launchScript, "launch", path}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = folder, output, output, []*os.File{held}
	ownGroup(cmd)
	word, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, gone.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, gone.Close())
	}
	c := &child{cmd: cmd, guard: g, gone: gone}
	err = g.watch(cmd.Process.Pid)
	if err == nil {
		_, err = fmt.Fprintln(word, "go")
	}
	if err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// exited waits at most d for the end of the child.
func (c *child) exited(d time.Duration) bool {
	if err := c.gone.SetReadDeadline(time.Now().Add(d)); err != nil {
		return false
	}
	_, err := c.gone.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// kill ends the child and everything it started, and reaps it.
func (c *child) kill() {
	killGroup(c.cmd.Process.Pid)
	c.guard.release()
	_ = c.cmd.Wait()      // An exit by signal is what was asked for.
	c.exited(stopTimeout) // Where there is no list of children, those of PostgreSQL end by themselves.
	_ = c.gone.Close()
}

// run executes one program to its end. It fails unless the program exits with 0.
func run(ctx context.Context, g *guard, folder, path string, args ...string) error {
	c, err := launch(ctx, g, folder, path, args)
	if err != nil {
		return err
	}
	for !c.exited(pollInterval) && ctx.Err() == nil {
		continue
	}
	if err := ctx.Err(); err != nil {
		c.kill()
		return err
	}
	g.release()
	err = c.cmd.Wait()
	_ = c.gone.Close()
	if err != nil {
		return fmt.Errorf("%s: %w%s", filepath.Base(path), err, lastOutput(folder))
	}
	return nil
}

// lastOutput returns the end of what the server in folder has printed.
func lastOutput(folder string) string {
	const most = 1500
	text, err := os.ReadFile(filepath.Join(folder, outputFile))
	if err != nil || len(text) == 0 {
		return ""
	}
	return "\n" + strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
