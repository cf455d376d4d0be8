package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// startTimeout bounds a start whose caller sets no earlier deadline. A busy
	// machine takes ten times as long as an idle one.
	startTimeout = 2 * time.Minute
	// stopTimeout bounds a stop in good order; after it the server is killed.
	stopTimeout = 30 * time.Second
	// pollInterval is the pause between two questions to a server.
	pollInterval = 10 * time.Millisecond
	// startAttempts bounds how often a start is repeated because the port that
	// was free a moment ago is no longer.
	startAttempts = 3
)

var (
	// ErrNotInstalled reports that the program of a server was not found.
	ErrNotInstalled = errors.New("server program not found")
	// ErrNotRunning reports a signal to a server that is stopped or killed.
	ErrNotRunning = errors.New("server is not running")
)

// Process is a server that runs as a child process. Its methods may be called
// from several goroutines.
type Process struct {
	name   string
	path   string
	args   []string
	folder string
	guard  *guard
	// ready returns nil when the server answers and is the process pid.
	ready func(ctx context.Context, pid int) error
	// quit asks the process to end.
	quit func(*os.Process) error

	mu      sync.Mutex
	current *child // guarded by mu; nil while the server is not running
	closed  bool   // guarded by mu
}

// openProcess finds a program, and prepares a temporary folder and the guard that removes it.
func openProcess(ctx context.Context, name, program string) (*Process, error) {
	path, err := locate(program)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "shop-"+name+"-")
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err == nil { // servers report where they are with symbolic links resolved
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return nil, err
	}
	g, err := newGuard(ctx, folder)
	if err != nil {
		return nil, err
	}
	return &Process{name: name, path: path, folder: folder, guard: g, quit: terminate}, nil
}

// Folder is where the server keeps its data and its output.
func (p *Process) Folder() string { return p.folder }

// PID is the number of the process, or 0 while none runs.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return 0
	}
	return p.current.cmd.Process.Pid
}

// startOn starts the server on a free port, for which prepare sets it up. It repeats that if the server exits: between
// the search for a port and its use, another process may take the port. After an error the server is closed.
func (p *Process) startOn(ctx context.Context, prepare func(port int) error) error {
	var err error
	for range startAttempts {
		var port int
		if port, err = freePort(ctx); err == nil {
			err = prepare(port)
		}
		if err == nil {
			err = p.start(ctx)
		}
		if !errors.Is(err, errExited) {
			break
		}
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return nil
}

// start launches the server and waits until it is ready.
func (p *Process) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("%s: %w", p.name, os.ErrClosed)
	}
	c, err := launch(ctx, p.guard, p.folder, p.path, p.args)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	for {
		err := p.ready(ctx, c.cmd.Process.Pid)
		if err == nil {
			p.current = c
			return nil
		}
		if c.exited(pollInterval) {
			c.kill()
			return fmt.Errorf("%s: %w%s", p.name, errExited, lastOutput(p.folder))
		}
		if ctx.Err() != nil {
			c.kill()
			return fmt.Errorf("%s is not ready: %w%s", p.name, err, lastOutput(p.folder))
		}
	}
}

// errExited distinguishes a server that exited at once, as it does when its port is taken, from one that is slow.
var errExited = errors.New("server exited while starting")

// Pause stops the server at once, like a machine that stalls. Connections stay open. When Pause returns the server
// executes nothing until Resume. Pausing a paused server changes nothing.
func (p *Process) Pause() error { return p.setPaused(true) }

// Resume lets a paused server continue.
func (p *Process) Resume() error { return p.setPaused(false) }

func (p *Process) setPaused(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return fmt.Errorf("%s: %w", p.name, ErrNotRunning)
	}
	if p.current.paused == paused {
		return nil
	}
	send := Continue
	if paused {
		send = Suspend
	}
	if err := send(p.current.cmd.Process); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.current.paused = paused
	pid := p.current.cmd.Process.Pid
	if paused {
		return p.guard.watch(pid, children(pid)...)
	}
	return p.guard.watch(pid)
}

// Kill crashes the server: it can neither flush nor say goodbye. Kill returns when
// the process is gone; a server that is not running is left alone.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill()
	return nil
}

// kill requires mu.
func (p *Process) kill() {
	if p.current != nil {
		p.current.kill()
		p.current = nil
	}
}

// Stop asks the server to shut down and waits for it. After ten seconds, or when
// ctx ends, it is killed. A server that is not running is left alone.
func (p *Process) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return nil
	}
	asked := cmp.Or(p.quit(p.current.cmd.Process), Continue(p.current.cmd.Process))
	for asked == nil && ctx.Err() == nil && !p.current.exited(pollInterval) {
		continue
	}
	p.kill()
	return nil
}

// Restart stops the server, unless it has been stopped or killed already, and
// starts it on the same port and folder. It returns when the server is ready.
// After an error the server is not running.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.start(ctx)
}

// Close kills the server and removes its folder. The server cannot be started again.
func (p *Process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.kill()
	return p.guard.close()
}
