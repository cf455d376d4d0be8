// Package fleet starts and stops instances of the service as separate processes, for the demo and the lab.
//
// Each instance holds the other end of a pipe and stops when the pipe closes. So no instance outlives the program
// that started it, however that program ends.
package fleet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/shop/internal/platform/testbed"
)

// Listening begins the line that an instance prints once it serves; its base
// URL follows.
const Listening = "listening on "

// Fleet is a number of instances.
type Fleet struct{ instances []*Instance }

// Instance is one process that serves.
type Instance struct {
	name string
	url  string
	cmd  *exec.Cmd
	hold io.Closer // its standard input
	done chan struct{}
	log  string
}

// Config says what to start.
type Config struct {
	Executable string
	Dir        string   // for the logs
	First, N   int      // of the numbers in the names
	Args       []string // of serve, in addition to name and address
	Env        []string // SHOP_NAME=VALUE: settings with passwords, as everybody on a machine may read arguments
}

// Start starts instances, and returns when all serve. After an error none runs.
func Start(ctx context.Context, c Config) (*Fleet, error) {
	f := &Fleet{}
	for i := range c.N {
		in, err := start(ctx, c, fmt.Sprintf("shop-%d", c.First+i))
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.instances = append(f.instances, in)
	}
	return f, nil
}

func start(ctx context.Context, c Config, name string) (*Instance, error) {
	in := &Instance{name: name, log: filepath.Join(c.Dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(in.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--instance", name, "--exit-on-stdin-eof"}, c.Args...)
	in.cmd = exec.Command(c.Executable, args...) //nolint:gosec,noctx // our own binary; it stops when the pipe closes
	in.cmd.Stderr = log
	in.cmd.Env = append(Environment(), c.Env...)
	if in.hold, err = in.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := in.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := in.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	urls := make(chan string, 1)
	go func() { // ends with the child, whose standard output it drains; Close waits for it
		defer close(in.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), Listening); ok {
				urls <- url
				break
			}
		}
		io.Copy(io.Discard, out) //nolint:errcheck // nothing is expected after the first line
		in.cmd.Wait()            //nolint:errcheck // how it ended is in its log
	}()
	select {
	case in.url = <-urls:
		return in, nil
	case <-in.done:
		return nil, fmt.Errorf("%s did not start: %s", name, lastLine(in.log))
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), in.Stop())
	}
}

// Environment returns the variables of this process for another one, without the SHOP_ settings, which the program has
// read itself.
func Environment() []string {
	var rest []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "SHOP_") {
			rest = append(rest, e)
		}
	}
	return rest
}

// Name returns the name of the instance.
func (in *Instance) Name() string { return in.name }

// PID returns the number of the process.
func (in *Instance) PID() int { return in.cmd.Process.Pid }

// Instances returns those that were started.
func (f *Fleet) Instances() []*Instance { return f.instances }

// URLs returns the base URLs of the instances.
func (f *Fleet) URLs() []string {
	var urls []string
	for _, in := range f.instances {
		urls = append(urls, in.url)
	}
	return urls
}

// Close stops all instances and waits for them. It may be called again.
func (f *Fleet) Close() error {
	for _, in := range f.instances {
		in.cmd.Process.Kill() //nolint:errcheck // it may be gone already
	}
	var errs []error
	for _, in := range f.instances {
		errs = append(errs, in.Stop())
	}
	return errors.Join(errs...)
}

// URL returns the base URL of the instance.
func (in *Instance) URL() string { return in.url }

// Ended returns a channel that is closed when the process has gone.
func (in *Instance) Ended() <-chan struct{} { return in.done }

// Pause stops the process at once (SIGSTOP), like a machine that stalls.
func (in *Instance) Pause() error { return testbed.Suspend(in.cmd.Process) }

// Resume ends Pause.
func (in *Instance) Resume() error { return testbed.Continue(in.cmd.Process) }

// Kill ends the instance at once, as a crash would, and waits until it is gone.
func (in *Instance) Kill() error {
	if err := in.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", in.name, err)
	}
	return in.Stop()
}

// Stop ends the instance in good order, and returns when it has gone: it closes the pipe that keeps the instance alive.
func (in *Instance) Stop() error {
	in.hold.Close()
	select {
	case <-in.done:
		return nil
	case <-time.After(20 * time.Second):
		return errors.Join(fmt.Errorf("%s does not stop; killed", in.name), in.cmd.Process.Signal(syscall.SIGKILL))
	}
}

// lastLine returns the last line of a log, for an error message.
func lastLine(file string) string {
	b, err := os.ReadFile(file) //nolint:gosec // our own temporary file
	if err != nil {
		return err.Error()
	}
	b = bytes.TrimSpace(b)
	return strings.TrimPrefix(string(b[bytes.LastIndexByte(b, '\n')+1:]), "shop: ")
}

// First returns the first n instances. They end with f.
func (f *Fleet) First(n int) *Fleet { return &Fleet{instances: f.instances[:n]} }
