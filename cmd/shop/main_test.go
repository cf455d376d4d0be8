package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/fleet"
	"example.com/shop/internal/testbed/testbedtest"
)

// TestMain makes this binary behave as shop in the processes that it starts, so
// that tests have real ones.
func TestMain(m *testing.M) {
	const asShop = "TEST_BINARY_IS_SHOP"
	if os.Getenv(asShop) != "" {
		main()
	}
	if err := os.Setenv(asShop, "1"); err != nil {
		panic(err)
	}
	code := m.Run()
	if productFolder != "" {
		os.RemoveAll(productFolder)
	}
	if err := testbedtest.Leaks(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// productFolder is where product has built, if it has.
var productFolder string

// product builds the program as its users have it. With the race detector, which this
// test has, a demo takes four times as long.
var product = sync.OnceValues(func() (string, error) {
	var err error
	if productFolder, err = os.MkdirTemp("", "shop-product-"); err != nil {
		return "", err
	}
	program := filepath.Join(productFolder, "shop")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})

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
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SHOP_") })
	var errs bytes.Buffer
	c.Stdout, c.Stderr = stdout, &errs
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), errs.String()
}

func noEnv(string) string { return "" }

// call runs a command and returns its exit code and what it printed.
func call(t *testing.T, getenv func(string) string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, getenv, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// running is an instance in this process.
type running struct {
	url    string
	stop   context.CancelFunc
	exited chan struct{}
	err    error // set when exited is closed
	stderr *testbedtest.Buffer
}

// start serves on free ports until the test ends.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{stop: stop, exited: make(chan struct{}), stderr: new(testbedtest.Buffer)}
	out, w := io.Pipe()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--instance", "test"}, args...)
	go func() {
		defer close(r.exited)
		code := run(ctx, args, noEnv, strings.NewReader(""), w, r.stderr)
		if code != 0 {
			r.err = fmt.Errorf("exit code %d: %s", code, r.stderr)
		}
		w.CloseWithError(errors.New("the instance has stopped"))
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil {
		stop()
		<-r.exited
		t.Fatalf("serve: %v", r.err)
	}
	_, url, _ := strings.Cut(strings.TrimSpace(string(line[:n])), fleet.Listening)
	r.url = url
	t.Cleanup(func() {
		stop()
		select {
		case <-r.exited:
			if r.err != nil {
				t.Errorf("serve: %v", r.err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("serve does not stop")
		}
	})
	return r
}

// send makes one request with a JSON body and returns status and answer.
func (r *running) send(t *testing.T, method, path, body string) (int, string) {
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
func (r *running) want(t *testing.T, status int, method, path, body string) string {
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

func sqliteURL(t *testing.T) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "shop.db")
}

func TestBadCommandLines(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"sell"},
		{"serve", "more"},
		{"serve", "--listen", "8080"},
		{"serve", "--instance", "a b"},
		{"serve", "--listen", "127.0.0.1:99999"},
		{"serve", "--log-level", "loud"},
		{"serve", "--database", "postgres://x"},
		{"serve", "--database", "sqlite:"},
		{"serve", "--database", "sqlite::memory:"},
		{"serve", "--database", "mysql://127.0.0.1"},
		{"serve", "--database", "mysql://user:secret@127.0.0.1:port/shop"},
		{"serve", "--redis", "localhost:6379"},
		{"serve", "--redis", "redis://["},
		{"serve", "--redlock", "redis://:secret@a:1"},
		{"serve", "--redlock", "redis://a:1,redis://b:1,redis://c:1,redis://d:1"},
		{"serve", "--redlock", "redis://a:1,redis://b:1,redis://a:1/2"},
		{"serve", "--redlock", "redis://a:1,b:1,redis://c:1"},
		{"serve", "--zookeeper", "localhost"},
		{"serve", "--zookeeper", "a:2181,"},
		{"serve", "--etcd", "http://a:2379"},
		{"serve", "--etcd", "a:0"},
		{"serve", "--order-ttl", "0s"},
		{"serve", "--lane", "no spaces"},
		{"serve", "--permits", "-1"},
		{"serve", "--permits", "1000001"},
		{"serve", "--permits", "few"},
		{"serve", "--customer-rate", "-2"},
		{"serve", "--customer-rate", "1000001"},
		{"serve", "--max-open-orders", "-1"},
		{"serve", "--auth", "open"},
		{"serve", "--canary", "--lane", "trial"},
		{"serve", "--nonsense"},
		{"events", "--types", "fish"},
		{"events", "--types", "order,"},
		{"demo", "--stock", "0"},
		{"demo", "--stock", "-1"},
		{"demo", "--stock", "many"},
		{"demo", "--attempts", "199"},
		{"demo", "--instances", "0"},
		{"demo", "--strategies", "naive,naive"},
		{"demo", "--strategies", "naiv"},
		{"demo", "--url", "http://127.0.0.1:1"},
		{"demo", "--url", "::x", "--database", "sqlite:shop.db"},
		{"demo", "--redis", "redis://["},
		{"demo", "--json", "--keep"},
		{"demo", "--zookeeper", "a"},
		{"demo", "--all", "--url", "http://127.0.0.1:1", "--database", "sqlite:shop.db"},
		{"demo", "--etcd", "a:1", "--url", "http://127.0.0.1:1", "--database", "sqlite:shop.db"},
		{"fence"},
		{"fence", "rebase"},
		{"fence", "rebase", "a", "b"},
		{"fence", "raise", "a"},
		{"fence", "rebase", "a b"},
		{"fence", "rebase", "a", "--etcd", "a:1"},
		{"fence", "list", "a"},
		{"fence", "list", "--etcd", "a"},
		{"fence", "list", "--zookeeper", "a:0"},
		{"fence", "rebase", "a", "--database", "shop.db"},
		{"demo", "--database", "shop.db"},
		{"audit", "--database", "shop.db"},
		{"healthcheck", "--url", "x"},
		{"lab", "throughput", "--out", "/dev/null/folder"},
	} {
		t.Chdir(t.TempDir())
		code, out, stderr := call(t, noEnv, args...)
		if code != 2 || out != "" {
			t.Errorf("%q: exit code %d, printed %q", args, code, out)
		}
		if len(args) > 1 && (strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "secret")) {
			t.Errorf("%q: want one line, got %q", args, stderr)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := func(k string) string { return map[string]string{"SHOP_STOCK": "many"}[k] }
	code, _, stderr := call(t, env, "demo")
	if code != 2 || !strings.Contains(stderr, "SHOP_STOCK") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	database := sqliteURL(t)
	env = func(k string) string { return map[string]string{"SHOP_DATABASE": database}[k] }
	if code, _, stderr := call(t, env, "migrate", "--create"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(strings.TrimPrefix(database, "sqlite:")); err != nil {
		t.Error(err)
	}
}

func TestStoresThatAreAwayAreNamed(t *testing.T) {
	for address, args := range map[string][]string{
		"no/such/place": {"serve", "--database", "sqlite:no/such/place/shop.db"},
		"nothing.db":    {"audit", "--database", "sqlite:nothing.db"},
		"127.0.0.1:3":   {"healthcheck", "--url", "http://127.0.0.1:3"},
		"none.db":       {"fence", "rebase", "a", "--database", "sqlite:none.db"},
	} {
		t.Chdir(t.TempDir())
		code, _, stderr := call(t, noEnv, args...)
		if code != 1 || !strings.Contains(stderr, address) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "secret") {
			t.Errorf("%q: exit code %d: %q", args, code, stderr)
		}
	}
}

func TestPortInUse(t *testing.T) {
	r := start(t, "--database", sqliteURL(t))
	address := strings.TrimPrefix(r.url, "http://")
	code, _, stderr := call(t, noEnv, "serve", "--database", sqliteURL(t), "--listen", address)
	if code != 1 || !strings.Contains(stderr, address) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, noEnv, "healthcheck", "--url", r.url); code != 0 {
		t.Errorf("healthcheck: exit code %d: %s", code, stderr)
	}
}
