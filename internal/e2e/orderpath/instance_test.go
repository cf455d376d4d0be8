package orderpath_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/fleet"
)

// instance is a process of the program whose blocks are counted.
type instance struct {
	url      string
	database string // its URL
	meta     string // the folder with the blocks that the counters are of
	commands io.Writer
	done     *bufio.Reader
}

// build builds the program with a counter in each block, and with cmd/shop/counters.go.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "shop")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags=ordercover", "-cover", "-covermode=atomic",
		"-coverpkg="+module+"internal/...,"+module+"cmd/shop", "-ldflags=-w", "-o", program, module+"cmd/shop")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return program
}

// start serves until the test ends.
func start(t *testing.T, program, database string, flags ...string) *instance {
	t.Helper()
	serve := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--instance", "test", "--canary", "--database", database}, flags...)...)
	log := new(testbedtest.Buffer)
	serve.Stderr = log
	serve.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	commands, err := serve.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	done, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	serve.ExtraFiles = []*os.File{end}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	end.Close()
	t.Cleanup(func() {
		commands.Close() // which ends the process
		if err := serve.Wait(); err != nil {
			t.Error(err)
		}
		done.Close()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("serve: %v: %s", err, log)
	}
	_, url, _ := strings.Cut(strings.TrimSpace(line), fleet.Listening)
	in := &instance{url: url, database: database, meta: t.TempDir(), commands: commands, done: bufio.NewReader(done)}
	in.tell(t, "meta "+in.meta)
	return in
}

// tell sends a command of cmd/shop/counters.go and waits until it is executed.
func (in *instance) tell(t *testing.T, command string) {
	t.Helper()
	if _, err := io.WriteString(in.commands, command+"\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := in.done.ReadString('\n'); err != nil || answer != "<nil>\n" {
		t.Fatalf("%s: %q, %v", command, answer, err)
	}
}

// send makes one request with a JSON body that creates something, and returns what went wrong.
func (in *instance) send(t *testing.T, method, path, key, body string) (problem string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, in.url+path, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
		return fmt.Sprintf("%s %s: status %d, %v: %s", method, path, resp.StatusCode, err, answer)
	}
	return ""
}
