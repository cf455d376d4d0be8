package testbed_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// orphanMaker makes the test binary start servers and wait to be killed.
const orphanMaker = "SHOP_TESTBED_ORPHANS"

func TestMain(m *testing.M) {
	if os.Getenv(orphanMaker) != "" {
		if err := makeOrphans(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	testbedtest.Main(m)
}

// makeOrphans prints the address and the folder of each server, and waits.
func makeOrphans() error {
	ctx := context.Background()
	r, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
	if err != nil {
		return err
	}
	paused, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
	if err != nil {
		return err
	}
	if err := paused.Pause(); err != nil {
		return err
	}
	m, err := testbed.StartMariaDB(ctx, testbed.MariaDBConfig{})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, r.Addr(), r.Folder(), paused.Addr(), paused.Folder(), m.Addr(), m.Folder())
	select {}
}

func TestServersDieWithTheirParent(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		testbedtest.StartRedis(t, testbed.RedisConfig{})     // Skips where there is none.
		testbedtest.StartMariaDB(t, testbed.MariaDBConfig{}) // The same.
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), orphanMaker+"=1", "TMPDIR="+t.TempDir())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 4096)
		n, err := out.Read(line)
		servers := strings.Fields(string(line[:n]))
		if err != nil || len(servers) != 6 {
			t.Fatalf("parent said %q: %v", line[:n], err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for i := 0; i < len(servers); i += 2 {
			addr, folder := servers[i], servers[i+1]
			testbedtest.Eventually(t, addr+" is closed", func() bool {
				conn, err := net.DialTimeout("tcp", addr, time.Second)
				if err == nil {
					conn.Close()
				}
				return err != nil
			})
			testbedtest.Eventually(t, folder+" is removed", func() bool {
				_, err := os.Stat(folder)
				return errors.Is(err, os.ErrNotExist)
			})
		}
	})
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	testbedtest.Steady(t, func(t testing.TB) {
		testbedtest.StartRedis(t, testbed.RedisConfig{})
		folder := t.TempDir()
		t.Setenv("TMPDIR", folder)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := testbed.StartRedis(ctx, testbed.RedisConfig{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v, want %v", r, err, context.Canceled)
		}
		if m, err := testbed.StartMariaDB(ctx, testbed.MariaDBConfig{}); err == nil {
			t.Errorf("got %v without an error", m.Addr())
		}
		left, err := os.ReadDir(folder)
		if err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func TestStartReportsTheOutputOfTheServer(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		testbedtest.StartRedis(t, testbed.RedisConfig{})
		_, err := testbed.StartRedis(t.Context(), testbed.RedisConfig{Args: []string{"--no-such-option", "1"}})
		if err == nil || !strings.Contains(err.Error(), "no-such-option") {
			t.Errorf("got %v, want the server's complaint", err)
		}
	})
}

func TestMissingServerIsNotInstalled(t *testing.T) {
	testbedtest.Steady(t, func(t testing.TB) {
		t.Setenv("PATH", t.TempDir())
		r, err := testbed.StartRedis(t.Context(), testbed.RedisConfig{})
		if err == nil {
			r.Close()
			t.Skip("redis-server is in a folder that is searched besides PATH")
		}
		if !errors.Is(err, testbed.ErrNotInstalled) {
			t.Errorf("got %v, want %v", err, testbed.ErrNotInstalled)
		}
	})
}

func TestClosedServerStaysClosed(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		r := testbedtest.StartRedis(t, testbed.RedisConfig{})
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Fatal(err)
		}
		if err := r.Restart(t.Context()); !errors.Is(err, os.ErrClosed) {
			t.Errorf("restart: got %v, want %v", err, os.ErrClosed)
		}
		if err := r.Pause(); !errors.Is(err, testbed.ErrNotRunning) {
			t.Errorf("pause: got %v, want %v", err, testbed.ErrNotRunning)
		}
		if _, err := os.Stat(r.Folder()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("folder is left: %v", err)
		}
	})
}

// Another process that looks for a free port must not take that of a server that is down for a while.
func TestPortOfADeadServerIsReserved(t *testing.T) {
	t.Parallel()
	r := testbedtest.StartRedis(t, testbed.RedisConfig{})
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	other, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", r.Addr())
	if !errors.Is(err, syscall.EADDRINUSE) {
		if err == nil {
			other.Close()
		}
		t.Fatalf("reservation of %s by another process: got %v, want %v", r.Addr(), err, syscall.EADDRINUSE)
	}
}
