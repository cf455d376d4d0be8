package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// program is the shop, built as this test is: with the race detector if the test has it.
var program string

// withRace says whether this test has the race detector.
var withRace = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// raceFlags are RACE of the Makefile, so that nothing is compiled twice.
var raceFlags = []string{
	"-race", "-gcflags=modernc.org/...=-race=false", "-gcflags=github.com/yuin/gopher-lua/...=-race=false",
	"-gcflags=github.com/go-zookeeper/zk/...=-race=false",
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) (code int) {
	folder, err := os.MkdirTemp("", "shop-e2e-")
	if err == nil {
		defer os.RemoveAll(folder)
		program = filepath.Join(folder, "shop")
		var flags []string
		if withRace {
			flags = raceFlags
		}
		err = build(program, flags...)
	}
	if err == nil {
		code = m.Run()
		err = testbedtest.Leaks()
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// build builds the shop, without what only debuggers read.
func build(to string, flags ...string) error {
	args := append(append([]string{"build", "-ldflags=-w"}, flags...), "-o", to, "example.com/shop/cmd/shop")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

var buildProduct = sync.OnceValues(func() (string, error) {
	if !withRace {
		return program, nil
	}
	fast := program + "-product"
	return fast, build(fast)
})

// product is the shop as its users have it: with the race detector a demo takes four times as long.
func product(t *testing.T) string {
	t.Helper()
	built, err := buildProduct()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// measured is for a test whose figures depend on the machine. It runs alongside others. At full size it is alone.
func measured(t *testing.T) {
	t.Helper()
	testbedtest.Measured(t)
	if testbedtest.Size(0, 1) == 1 {
		alone(t)
	}
}

// alone is for a test during which no other test of this package may run, and at full size none at all, so it is not parallel. Its instances are those that users
// have.
func alone(t *testing.T) {
	t.Helper()
	usual := program
	program = product(t)
	t.Cleanup(func() { program = usual })
}

// noEnv are no variables.
var noEnv map[string]string

// environment returns that of a process of the shop, with these variables and no other SHOP_ one.
func environment(env map[string]string) []string {
	all := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SHOP_") })
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return append(all, "GORACE=atexit_sleep_ms=0") // it would sleep for a second before each end
}

// raceFree fails the test if a process reported a data race.
func raceFree(t *testing.T, stderr string) {
	t.Helper()
	if strings.Contains(stderr, "WARNING: DATA RACE") {
		t.Errorf("the process has a data race: %s", stderr)
	}
}

// callTimeout is for a command that does not end although it should: the test fails, and the others go on.
var callTimeout = time.Duration(testbedtest.Size(5, 30)) * time.Minute

// call runs a command that ends by itself, and returns its exit code and what it printed.
func call(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	code = callUntil(ctx, t, program, env, &out, &errs, args...)
	if ctx.Err() != nil {
		t.Errorf("%q did not end within %v", args, callTimeout)
	}
	return code, out.String(), errs.String()
}

// callUntil is call for a command of one of the programs that continues until it is interrupted, when ctx ends.
func callUntil(ctx context.Context, t *testing.T, program string, env map[string]string, stdout, stderr io.Writer, args ...string) (code int) {
	t.Helper()
	said := new(testbedtest.Buffer)
	c := exec.CommandContext(ctx, program, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Env, c.Stdout, c.Stderr = environment(env), stdout, io.MultiWriter(stderr, said)
	if err := c.Run(); c.ProcessState == nil {
		t.Error(err)
		return -1
	}
	raceFree(t, said.String())
	return c.ProcessState.ExitCode()
}

// shows fails the test unless the command ends well and prints all of want.
func shows(t *testing.T, args []string, want ...string) string {
	t.Helper()
	code, out, stderr := call(t, noEnv, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%q prints no %q:\n%s", args, w, out)
		}
	}
	return out
}

// refuses fails the test unless the command fails with one line that has want.
func refuses(t *testing.T, want string, args ...string) {
	t.Helper()
	got, out, stderr := call(t, noEnv, args...)
	if got != 1 || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
		t.Errorf("%q: exit code %d, want 1 and %q: %s%s", args, got, want, out, stderr)
	}
}

// command runs the program as its users do, and returns its exit code and what it printed.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out bytes.Buffer
	code, stderr = commandInto(t, &out, args...)
	return code, out.String(), stderr
}

// commandInto is command for who reads along.
func commandInto(t *testing.T, stdout io.Writer, args ...string) (code int, stderr string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), product(t), args...)
	c.Env = environment(nil)
	var errs bytes.Buffer
	c.Stdout, c.Stderr = stdout, &errs
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), errs.String()
}

// stallDetector measures how long this process, and with it the machine, did not run. Time limits of tests exclude
// stalls, because a virtual machine may be paused for seconds at any time.
type stallDetector struct {
	mu   sync.Mutex
	last time.Time // when the process was last seen to continue
	sum  time.Duration
}

// unnoticed is the longest pause that counts as ordinary scheduling.
const unnoticed = 500 * time.Millisecond

// detectStalls runs until the test ends.
func detectStalls(t *testing.T) *stallDetector {
	t.Helper()
	s := &stallDetector{last: time.Now()}
	over, stop := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-over
	})
	go func() {
		defer close(over)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.total()
			}
		}
	}()
	return s
}

// total returns the total time for which the process was paused.
func (s *stallDetector) total() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if d := now.Sub(s.last); d > unnoticed {
		s.sum += d
	}
	s.last = now
	return s.sum
}
