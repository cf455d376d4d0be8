package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/show/fleet"
)

// Worker is the side of a lab that runs in a process of its own. The lab decides when it continues after each point, so that what
// two workers do happens in one order.
type Worker struct {
	Task map[string]string // what the lab wants of this worker

	lines *bufio.Scanner

	mu  sync.Mutex // of out: the loss of a lease is reported by a goroutine of its own
	out *json.Encoder
}

// NewWorker returns a worker that reports to out, and continues at each line of in. The first line is its task.
func NewWorker(in io.Reader, out io.Writer) (*Worker, error) {
	w := &Worker{lines: bufio.NewScanner(in), out: json.NewEncoder(out)}
	if !w.lines.Scan() {
		return nil, errors.New("a worker has its task in the first line of its input: labs start workers, people do not")
	}
	return w, json.Unmarshal(w.lines.Bytes(), &w.Task)
}

// Report is what a worker says.
type Report struct {
	Point string    `json:"point"`
	At    time.Time `json:"at"`
	Value string    `json:"value,omitempty"`
}

// Says reports a point, and continues at once.
func (w *Worker) Says(point, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Encode(Report{point, time.Now(), fmt.Sprintf(format, args...)}) //nolint:errcheck,errchkjson // the lab has ended
}

// Stops reports a point, and waits until the lab lets it continue. It ends the worker when the lab has ended.
func (w *Worker) Stops(point, format string, args ...any) {
	w.Says(point, format, args...)
	if !w.lines.Scan() {
		check(errors.Join(io.ErrUnexpectedEOF, w.lines.Err()))
	}
}

// at reports a point, and stops there if the task names it in "stop".
func (w *Worker) at(point, value string) {
	if slices.Contains(strings.Split(w.Task["stop"], ","), point) {
		w.Stops(point, "%s", value)
	} else {
		w.Says(point, "%s", value)
	}
}

// Process is a worker as its lab sees it.
type Process struct {
	Name string

	cmd     *exec.Cmd
	in      io.WriteCloser
	reports chan Report
	stderr  ending
}

// Start starts a worker of this lab. It ends with the run.
func (r *Run) Start(ctx context.Context, name string, task map[string]string) *Process {
	p := &Process{Name: name, reports: make(chan Report, 64)}
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), r.Executable, "lab", "worker", r.lab.Name) //nolint:gosec // our own binary
	p.cmd.Stderr, p.cmd.Env = &p.stderr, fleet.Environment()
	out := must(p.cmd.StdoutPipe())
	p.in = must(p.cmd.StdinPipe())
	check(p.cmd.Start())
	ended := make(chan struct{})
	go func() { // ends with the process, which ends with its input
		defer close(ended)
		defer close(p.reports)
		for lines := json.NewDecoder(out); ; {
			var report Report
			if lines.Decode(&report) != nil {
				break
			}
			p.reports <- report
		}
		io.Copy(io.Discard, out) //nolint:errcheck // nobody reads on
		p.cmd.Wait()             //nolint:errcheck // how it ended is in what it wrote
	}()
	r.Defer(func() error {
		p.in.Close()
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		for range p.reports {
		}
		<-ended
		return nil
	})
	check(json.NewEncoder(p.in).Encode(task))
	return p
}

// ready starts a worker, and waits until it is ready.
func (r *Run) ready(ctx context.Context, name string, task map[string]string) *Process {
	p := r.Start(ctx, name, task)
	p.Until(ctx, pointReady)
	return p
}

// Until returns the report of the first of some points, as soon as the worker reaches it. It forgets reports of other points.
func (p *Process) Until(ctx context.Context, points ...string) Report {
	return must(p.next(ctx, points...))
}

// next is Until for a caller that handles the error.
func (p *Process) next(ctx context.Context, points ...string) (Report, error) {
	for {
		select {
		case report, ok := <-p.reports:
			if !ok {
				return report, fmt.Errorf("worker %s ended before %q: %s", p.Name, points, p.stderr.String())
			}
			if slices.Contains(points, report.Point) {
				return report, nil
			}
		case <-ctx.Done():
			return Report{}, fmt.Errorf("worker %s did not reach %q: %w", p.Name, points, context.Cause(ctx))
		}
	}
}

// Continue lets the worker continue after the point at which it stops.
func (p *Process) Continue() { must(io.WriteString(p.in, "\n")) }

// To is Continue and then Until.
func (p *Process) To(ctx context.Context, point string) Report {
	p.Continue()
	return p.Until(ctx, point)
}

// Pause stops the process with SIGSTOP.
func (p *Process) Pause() { check(testbed.Suspend(p.cmd.Process)) }

// Resume ends Pause.
func (p *Process) Resume() { check(testbed.Continue(p.cmd.Process)) }

// Kill ends the process at once, as a crash would.
func (p *Process) Kill() { check(p.cmd.Process.Signal(os.Kill)) }

// ending keeps the last bytes that were written.
type ending struct {
	mu   sync.Mutex
	text []byte
}

func (t *ending) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-1000):]
	return len(b), nil
}

func (t *ending) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
