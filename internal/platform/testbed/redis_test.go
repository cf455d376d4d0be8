package testbed_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// maxWait is how long a client waits for a server that should not answer.
const maxWait = 150 * time.Millisecond

// newClient returns a client that reports every failure instead of retrying.
func newClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// silent reports whether a request gets no answer before its deadline.
func silent(ctx context.Context, c *redis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	err := c.Ping(ctx).Err()
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return nil
	}
	return fmt.Errorf("the server answered or hung up: %w", cmp.Or(err, errors.New("no error")))
}

func TestPausedRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		r := testbedtest.StartRedis(t, testbed.RedisConfig{})
		c := newClient(t, r.Addr())
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.Pause(), r.Pause()); err != nil {
			t.Fatal(err)
		}
		if err := silent(t.Context(), c); err != nil {
			t.Error(err)
		}
		if err := errors.Join(r.Resume(), r.Resume()); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Get(t.Context(), "k").Result(); got != "v" || err != nil {
			t.Errorf("after Resume: got %q, %v", got, err)
		}
	})
}

func TestRedisRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  testbed.RedisConfig
		want int64
	}{
		{"in memory comes back empty", testbed.RedisConfig{}, 0},
		{"append-only keeps every write", testbed.RedisConfig{AppendOnly: true}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testbedtest.Steady(t, func(t testing.TB) {
				r := testbedtest.StartRedis(t, tt.cfg)
				c := newClient(t, r.Addr())
				if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(r.Pause(), r.Kill(), r.Kill()); err != nil {
					t.Fatal(err)
				}
				if err := c.Ping(t.Context()).Err(); err == nil {
					t.Error("a killed server answers")
				}
				for range 2 { // From killed and from running.
					if err := r.Restart(t.Context()); err != nil {
						t.Fatal(err)
					}
					// A client of its own, because the pool holds connections to the old server.
					if n, err := newClient(t, r.Addr()).Exists(t.Context(), "k").Result(); n != tt.want || err != nil {
						t.Errorf("got %d keys, %v, want %d", n, err, tt.want)
					}
				}
			})
		})
	}
}

func TestRedisIsNotMistakenForAnother(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		r := testbedtest.StartRedis(t, testbed.RedisConfig{})
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		squatter := exec.CommandContext(t.Context(), "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "")
		if err := squatter.Start(); err != nil {
			t.Skipf("redis-server is not in PATH: %v", err)
		}
		defer func() { _ = squatter.Wait() }()
		defer func() { _ = squatter.Process.Kill() }()
		testbedtest.Eventually(t, "the other server answers", func() bool {
			return newClient(t, r.Addr()).Ping(t.Context()).Err() == nil
		})
		if err := r.Restart(t.Context()); err == nil {
			t.Error("the server that has the port was taken for ours")
		}
		if err := r.Pause(); !errors.Is(err, testbed.ErrNotRunning) {
			t.Errorf("pause: got %v, want %v", err, testbed.ErrNotRunning)
		}
	})
}
