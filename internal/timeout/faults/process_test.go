package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const asNode = "TEST_BINARY_IS_NODE"

// silent keeps go-redis from printing what its errors say as well.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestMain makes this binary an instance in the processes that it starts.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	if text := os.Getenv(asNode); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs an instance until its standard input ends, as it does when the test dies.
func child(text string) error {
	var cfg nodeConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	n, err := newNode(cfg)
	if err != nil {
		return err
	}
	defer n.close()
	n.holding = func() { fmt.Fprintln(os.Stdout, "holding") }
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		io.Copy(io.Discard, os.Stdin)
	}()
	fmt.Fprintln(os.Stdout, "ready")
	if err := n.Run(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(n.seen.all())
}

// process is an instance that can be killed.
type process struct {
	*os.Process
	t     *testing.T
	stdin io.Closer
	lines chan string
	end   func()
}

// fork starts an instance in a process of its own.
func (w *world) fork(cfg nodeConfig) *process {
	w.t.Helper()
	cfg.Database, cfg.Redis = w.database, w.address
	text, err := json.Marshal(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), executable)
	cmd.Env = append(os.Environ(), asNode+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	p := &process{Process: cmd.Process, t: w.t, stdin: stdin, lines: make(chan string, 1000)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	p.end = sync.OnceFunc(func() {
		cmd.Process.Kill()
		<-read
		cmd.Wait()
	})
	w.t.Cleanup(p.end)
	p.await("ready")
	return p
}

// await reads what the process prints up to a line that begins with a prefix.
func (p *process) await(prefix string) string {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the process ended before it printed %q", prefix)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-deadline:
			p.t.Fatalf("the process does not print %q", prefix)
		}
	}
}

// stop drains the process and returns what it has counted.
func (p *process) stop() (counted map[string]int) {
	p.t.Helper()
	p.stdin.Close()
	if err := json.Unmarshal([]byte(p.await("{")), &counted); err != nil {
		p.t.Fatal(err)
	}
	p.end()
	return counted
}
