package e2e_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/testbed/testbedtest"
)

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
	code = callUntil(ctx, t, env, &out, &errs, args...)
	if ctx.Err() != nil {
		t.Errorf("%q did not end within %v", args, callTimeout)
	}
	return code, out.String(), errs.String()
}

// callUntil is call for a command that continues until it is interrupted, when ctx ends.
func callUntil(ctx context.Context, t *testing.T, env map[string]string, stdout, stderr io.Writer, args ...string) (code int) {
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
	program, err := product()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = environment(nil)
	var errs bytes.Buffer
	c.Stdout, c.Stderr = stdout, &errs
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), errs.String()
}
