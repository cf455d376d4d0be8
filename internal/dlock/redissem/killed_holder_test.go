package redissem_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/dlock/redistokens"
	"example.com/shop/internal/testbed/testbedtest"
)

// childEnv makes a run of the test binary a process that uses a semaphore:
// BACKEND URL KEY PERMITS NAME. The child does that until it is killed.
const childEnv = "SHOP_TEST_SEMAPHORE_CHILD"

// backend opens a semaphore by the name of its kind.
func backend(t testing.TB, kind string, rdb redis.UniversalClient, permits int, name string) dlock.Semaphore {
	t.Helper()
	if kind == "tokens" {
		return redistest.Tokens(t, rdb, redistokens.Config{Permits: permits, TTL: ttl, Name: name})
	}
	return redistest.Semaphore(t, rdb, redissem.Config{Permits: permits, TTL: ttl})
}

func backends(t *testing.T, f func(t testing.TB, kind string)) {
	t.Helper()
	for _, kind := range []string{"leases", "tokens"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				f(t, kind)
			})
		})
	}
}

// TestSemaphoreChild is the child: it takes all permits, one by one, says so,
// and waits for one more until its end.
func TestSemaphoreChild(t *testing.T) {
	args := strings.Fields(os.Getenv(childEnv))
	if len(args) != 5 {
		t.Skip("this is no child")
	}
	permits, err := strconv.Atoi(args[3])
	if err != nil {
		t.Fatal(err)
	}
	s := backend(t, args[0], redistest.Client(t, args[1]), permits, args[4])
	for range permits {
		if _, err := s.Acquire(t.Context(), args[2], 1); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(os.Stdout, "holds all")
	s.Acquire(t.Context(), args[2], permits)
}

// child starts a process that holds all permits of key, and returns when it does.
func child(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	said, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := childCommand(t, "^TestSemaphoreChild$", childEnv, args...)
	cmd.Stdout = says
	launch(t, cmd)
	says.Close()
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if lines.Text() == "holds all" {
			return cmd
		}
	}
	t.Fatal("the child ended before it held anything")
	return nil
}

// childCommand is a run of one test of this binary.
func childCommand(t testing.TB, test, env string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+test)
	cmd.Env = append(os.Environ(), env+"="+strings.Join(args, " "))
	return cmd
}

func launch(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func kill(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // it says that the child was killed
}

// The permits of a killed process, and its place in the queue, are free again within its TTL and a fallback poll.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	backends(t, func(t testing.TB, kind string) {
		const permits = 3
		url, key := testbedtest.Redis(t), rand.Text()
		s := backend(t, kind, redistest.Client(t, url), permits, "parent-"+key)
		for range 3 {
			victim := child(t, kind, url, key, strconv.Itoa(permits), "child-"+key)
			ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
			if lease, err := s.TryAcquire(ctx, key, 1); err == nil {
				t.Fatalf("a permit is free: %v", lease.Fence())
			}
			kill(t, victim)
			start := time.Now()
			lease, err := s.Acquire(ctx, key, permits)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); d > 2*ttl {
				t.Errorf("all permits are free again after %v, the TTL is %v", d, ttl)
			}
			lease.Release(t.Context())
		}
	})
}

// A process that was killed and started again need not wait for its own TTL.
func TestReleaseAllOfKilledHolder(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		url, key := testbedtest.Redis(t), rand.Text()
		name := "worker-" + key
		rdb := redistest.Client(t, url)
		other := redistest.Tokens(t, rdb, redistokens.Config{Permits: 4, TTL: ttl, Name: "other-" + key})
		kept, err := other.Acquire(t.Context(), key, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Release(t.Context())
		victim := child(t, "tokens", url, key, "3", name)
		kill(t, victim)
		start := time.Now()
		again := redistest.Tokens(t, rdb, redistokens.Config{Permits: 4, TTL: ttl, Name: name})
		if err := again.ReleaseAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease, err := again.TryAcquire(t.Context(), key, 3)
		if err != nil {
			t.Fatalf("%v after the death of the holder: %v", time.Since(start), err)
		}
		if err := again.ReleaseAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for who, l := range map[string]*dlock.Lease{"another process": kept, "the process itself": lease} {
			if _, err := other.TryAcquire(t.Context(), key, 1); err == nil {
				t.Errorf("ReleaseAll took from %s", who)
			}
			if err := l.Err(); err != nil {
				t.Error(err)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("the lease of a living client: %v", err)
		}
		if err := redistest.Tokens(t, rdb, redistokens.Config{TTL: ttl}).ReleaseAll(t.Context()); err == nil {
			t.Error("a process without a name released something")
		}
	})
}
