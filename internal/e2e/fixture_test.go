package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/fleet"
	"example.com/shop/internal/redisclient"
	"example.com/shop/internal/testbed/testbedtest"
)

// spawned is an instance in a process of its own.
type spawned struct {
	running
	cmd    *exec.Cmd
	stdout io.Reader
}

// spawn starts an instance that ends with the test at the latest, also when that is killed, and returns when it listens.
func spawn(t *testing.T, args ...string) *spawned {
	t.Helper()
	s := launch(t, args...)
	s.listens(t)
	return s
}

// launch is spawn, but does not wait.
func launch(t *testing.T, args ...string) *spawned {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--exit-on-stdin-eof"}, args...)
	s := &spawned{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)}
	s.exited, s.stderr = make(chan struct{}), new(testbedtest.Buffer)
	s.cmd.Stderr = s.stderr
	stdin, err := s.cmd.StdinPipe() // open for as long as this process lives
	if err != nil {
		t.Fatal(err)
	}
	out, w := io.Pipe()
	s.stdout, s.cmd.Stdout = out, w
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		w.CloseWithError(errors.New("the instance has stopped"))
		close(s.exited)
	}()
	t.Cleanup(func() {
		s.kill()
		stdin.Close()
	})
	return s
}

// listens waits until the instance does.
func (s *spawned) listens(t *testing.T) {
	t.Helper()
	line, err := bufio.NewReader(s.stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("serve: %v: %s", err, s.stderr)
	}
	_, s.url, _ = strings.Cut(strings.TrimSpace(line), fleet.Listening)
}

// terminate asks the instance to stop.
func (s *spawned) terminate(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// kill ends the instance where it stands.
func (s *spawned) kill() {
	_ = s.cmd.Process.Kill() // it may have gone by itself
	<-s.exited
}

// stopped waits for the instance to end by itself, in good order.
func (r *running) stopped(t *testing.T) {
	t.Helper()
	select {
	case <-r.exited:
		if r.err != nil {
			t.Errorf("serve: %v: %s", r.err, r.stderr)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the instance does not stop")
	}
}

// stage is a database and a Redis that nobody else uses.
type stage struct {
	database, redis string
	flags           []string // that make an instance use both
}

func newStage(t *testing.T) stage {
	t.Helper()
	s := stage{database: testbedtest.Database(t), redis: ownRedis(t)}
	s.flags = []string{"--database", s.database, "--redis", s.redis}
	return s
}

// three starts three instances in this process.
func (s stage) three(t *testing.T, more ...string) (all [3]*running) {
	t.Helper()
	for i := range all {
		args := append(append([]string{"--instance", fmt.Sprint("shop-", i+1)}, s.flags...), more...)
		all[i] = start(t, args...)
	}
	return all
}

// locks returns the locks of the instances, for a test that holds or inspects them itself. What it
// holds it keeps, though the machine stand still for longer than a lease of theirs lasts.
func (s stage) locks(t *testing.T) *redislock.Locker {
	t.Helper()
	rdb, err := redisclient.New(s.redis)
	if err != nil {
		t.Fatal(err)
	}
	locks, err := redislock.New(rdb, redislock.Config{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := errors.Join(locks.Close(ctx), rdb.Close()); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// hold takes a lock from the instances until the test gives it back.
func hold(t *testing.T, locks *redislock.Locker, key string) *dlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := locks.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// free gives a lock back.
func free(t *testing.T, lease *dlock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// queued waits until so many stand in the queue of a lock.
func queued(t *testing.T, locks *redislock.Locker, key string, n int) {
	t.Helper()
	testbedtest.Eventually(t, fmt.Sprint(n, " wait for ", key), func() bool { return inspect(t, locks, key).Waiters == n })
}

// inspect returns the state of a lock.
func inspect(t *testing.T, locks *redislock.Locker, key string) (state dlock.State) {
	t.Helper()
	surely(t, func() (err error) {
		state, err = locks.Inspect(t.Context(), key)
		return err
	})
	return state
}

// surely does what can be repeated until it succeeds: where the machine stands still, an answer may come too late.
func surely(t *testing.T, do func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
