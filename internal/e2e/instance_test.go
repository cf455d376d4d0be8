package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/fleet"
)

// instance is a process that serves.
type instance struct {
	url    string
	stderr *testbedtest.Buffer
	cmd    *exec.Cmd
	stdout io.Reader
	exited chan struct{}
	err    error // set when exited is closed
	killed bool  // by the test
	ending sync.Once
}

// siblings are the instances of a test that have to stop in good order, which they do at the same time.
var siblings struct {
	sync.Mutex

	of map[*testing.T][]*instance
}

// start serves on free ports until the test ends, and fails the test unless the instance stops in good order then.
func start(t *testing.T, args ...string) *instance {
	t.Helper()
	in := begin(t, append([]string{"--instance", "test"}, args...)...)
	in.listens(t)
	return in
}

// begin is start, but does not wait until the instance listens.
func begin(t *testing.T, args ...string) *instance {
	t.Helper()
	in := launch(t, args...)
	siblings.Lock()
	defer siblings.Unlock()
	if siblings.of == nil {
		siblings.of = make(map[*testing.T][]*instance)
	}
	siblings.of[t] = append(siblings.of[t], in)
	t.Cleanup(func() {
		siblings.Lock()
		all := siblings.of[t]
		delete(siblings.of, t)
		siblings.Unlock()
		for _, each := range all {
			each.stop()
		}
		in.stopped(t)
	})
	return in
}

// spawn is start for an instance that is killed when the test ends.
func spawn(t *testing.T, args ...string) *instance {
	t.Helper()
	in := launch(t, args...)
	in.listens(t)
	return in
}

// raced has the names of the tests that have started an instance with the race detector.
var raced sync.Map

// builtFor returns the program of the next instance of a test. The first one has the race detector, if the test has it. The
// others are those that users have, which use a third of the processor time. At full size all have it.
func builtFor(t *testing.T) string {
	t.Helper()
	switch _, more := raced.LoadOrStore(t.Name(), true); {
	case !more:
		t.Cleanup(func() { raced.Delete(t.Name()) })
	case testbedtest.Size(0, 1) == 0:
		return product(t)
	}
	return program
}

// launch is spawn, but does not wait until the instance listens.
func launch(t *testing.T, args ...string) *instance {
	t.Helper()
	return launchOf(t, builtFor(t), args...)
}

// launchOf is launch for one of the programs. The instance ends with this process, however that ends.
func launchOf(t *testing.T, program string, args ...string) *instance {
	t.Helper()
	return launchIn(t, nil, program, args...)
}

// launchIn is launchOf with an environment.
func launchIn(t *testing.T, env map[string]string, program string, args ...string) *instance {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--exit-on-stdin-eof"}, args...)
	in := &instance{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), program, args...), exited: make(chan struct{}), stderr: new(testbedtest.Buffer)}
	in.cmd.Env, in.cmd.Stderr = environment(env), in.stderr
	stdin, err := in.cmd.StdinPipe() // open for as long as this process lives
	if err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	in.stdout, in.cmd.Stdout = out, w
	if err := in.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		in.err = in.cmd.Wait()
		w.CloseWithError(errors.New("the instance has stopped"))
		close(in.exited)
	}()
	t.Cleanup(func() {
		in.kill()
		stdin.Close()
		raceFree(t, in.stderr.String())
	})
	return in
}

// listens waits until the instance does, and until all is read that it has logged by then.
func (r *instance) listens(t *testing.T) {
	t.Helper()
	line, err := bufio.NewReader(r.stdout).ReadString('\n')
	if err != nil {
		<-r.exited
		t.Fatalf("serve: %v: %s", r.err, r.stderr)
	}
	_, r.url, _ = strings.Cut(strings.TrimSpace(line), fleet.Listening)
	testbedtest.Eventually(t, "it has logged that it serves", func() bool { return strings.Contains(r.stderr.String(), `"msg":"serving"`) })
}

// stop asks the instance to stop: once, as a second signal would end it at once.
func (r *instance) stop() {
	r.ending.Do(func() { _ = r.cmd.Process.Signal(syscall.SIGTERM) }) // it may have gone by itself
}

// stopped waits for the instance to end by itself, in good order.
func (r *instance) stopped(t *testing.T) {
	t.Helper()
	select {
	case <-r.exited:
		if r.err != nil && !r.killed {
			t.Errorf("serve: %v: %s", r.err, r.stderr)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the instance does not stop")
	}
}

// kill ends the instance at once, without a drain.
func (r *instance) kill() {
	r.killed = true
	_ = r.cmd.Process.Kill() // it may have gone by itself
	<-r.exited
}

// signal sends a signal to the instance.
func (r *instance) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// admin returns where the instance listens for operators.
func (r *instance) admin(t *testing.T) string {
	t.Helper()
	return "http://" + r.serving(t).Admin
}

// addresses is what an instance says of its listeners.
type addresses struct{ Msg, Admin, Metrics string }

// serving returns what the instance said.
func (r *instance) serving(t *testing.T) (line addresses) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(r.stderr.String())); lines.Scan(); {
		if err := json.Unmarshal(lines.Bytes(), &line); err == nil && line.Msg == "serving" {
			return line
		}
	}
	t.Fatalf("it does not serve: %s", r.stderr.String())
	return line
}

// send makes one request with a JSON body and returns status and answer.
func (r *instance) send(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// want makes one request, again while it is refused for now, and fails the test at another
// status.
func (r *instance) want(t *testing.T, status int, method, path, body string) string {
	t.Helper()
	got, answer := r.send(t, method, path, body)
	again := func() bool { return got != status && (got == http.StatusTooManyRequests || later(got, answer)) }
	for end := time.Now().Add(time.Minute); again() && time.Now().Before(end); got, answer = r.send(t, method, path, body) {
		<-time.After(20 * time.Millisecond)
	}
	if got != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, answer)
	}
	return answer
}

// roomProcess is a process of shop lab.
type roomProcess struct {
	url   string // of its page
	books string // the command that it names for its audit, or none
	pid   int
	end   func() // interrupts it, and fails the test if a process of it is left
}

// startRoom starts shop lab. It ends with the test, if not before.
func startRoom(t *testing.T, program string, flags ...string) (r roomProcess) {
	t.Helper()
	output, over := new(testbedtest.Buffer), make(chan error, 1)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, append([]string{"lab"}, flags...)...)
	c.Env, c.Stdout, c.Stderr = environment(nil), output, output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { over <- c.Wait() }()
	r.pid = c.Process.Pid
	r.end = sync.OnceFunc(func() {
		children := descendants(t, r.pid)
		_ = c.Process.Signal(os.Interrupt) // it may have gone by itself
		if err := <-over; err != nil {
			t.Errorf("the room ended with %v: %s", err, output)
		}
		raceFree(t, output.String())
		for _, pid := range children {
			if state := processState(pid); state != "" && state != "Z" { // Z: the system has not removed it yet
				t.Errorf("process %d of the room is left, in state %s", pid, state)
			}
		}
	})
	t.Cleanup(r.end)
	address, books := regexp.MustCompile(`http://\S+#token=\S+`), regexp.MustCompile(`shop audit --database '[^']+'`)
	testbedtest.Eventually(t, "the room is open", func() bool {
		r.url = address.FindString(output.String())
		return r.url != "" && strings.Contains(output.String(), "Ctrl-C")
	})
	r.books = books.FindString(output.String())
	return r
}

// room is startRoom for a test that needs the address of the page only.
func room(t *testing.T, program string, flags ...string) (url string) {
	t.Helper()
	return startRoom(t, program, flags...).url
}
