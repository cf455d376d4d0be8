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

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// childEnv makes a run of the test binary a process that uses a semaphore:
// URL KEY PERMITS. The child does that until it is killed.
const childEnv = "SHOP_TEST_SEMAPHORE_CHILD"

// semaphore opens a semaphore as a process does.
func semaphore(t testing.TB, rdb redis.UniversalClient, permits int) *redissem.Semaphore {
	t.Helper()
	return redistest.Semaphore(t, rdb, redissem.Config{Permits: permits, TTL: ttl})
}

// TestSemaphoreChild is the child: it takes all permits, one by one, says so,
// and waits for one more until its end.
func TestSemaphoreChild(t *testing.T) {
	args := strings.Fields(os.Getenv(childEnv))
	if len(args) != 3 {
		t.Skip("this is no child")
	}
	permits, err := strconv.Atoi(args[2])
	if err != nil {
		t.Fatal(err)
	}
	s := semaphore(t, redistest.Client(t, args[0]), permits)
	for range permits {
		if _, err := s.Acquire(t.Context(), args[1], 1); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(os.Stdout, "holds all")
	s.Acquire(t.Context(), args[1], permits)
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
	testbedtest.Steady(t, func(t testing.TB) {
		const permits = 3
		url, key := testbedtest.Redis(t), rand.Text()
		s := semaphore(t, redistest.Client(t, url), permits)
		for range 3 {
			victim := child(t, url, key, strconv.Itoa(permits))
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
