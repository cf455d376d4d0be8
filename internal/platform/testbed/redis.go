package testbed

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// attemptTimeout bounds one question to a server that may not be there yet.
const attemptTimeout = 5 * time.Second

// RedisConfig says how to run a Redis server. The zero value is a server that
// keeps everything in memory.
type RedisConfig struct {
	// AppendOnly makes every acknowledged write survive Kill and Restart.
	// Default: Restart comes back empty, as a cache does.
	AppendOnly bool
	// OwnClock gives the server a clock that SetClock sets, by libfaketime. Without the library, StartRedis returns
	// [ErrNotInstalled].
	OwnClock bool
	// Args are further options of redis-server; they win over the ones above.
	Args []string
}

// Redis is a Redis server that runs as a child process.
type Redis struct {
	*Process
	addr string
}

// StartRedis runs a Redis server on a free loopback port and returns when it answers.
func StartRedis(ctx context.Context, cfg RedisConfig) (*Redis, error) {
	process, err := openProcess(ctx, "redis", "redis-server")
	if err != nil {
		return nil, err
	}
	r := &Redis{Process: process}
	process.ready = r.ready
	var clock []string
	if cfg.OwnClock {
		if clock, err = r.ownClock(); err != nil {
			return nil, errors.Join(err, process.Close())
		}
	}
	return r, process.startOn(ctx, func(port int) error {
		r.addr = loopback(port)
		process.args = slices.Concat(clock, cfg.args(port, process.folder))
		return nil
	})
}

// clockFile has what libfaketime adds to the clock.
const clockFile = "clock"

// ownClock has the server started by env, with the clock of libfaketime. jemalloc reads the clock before libfaketime
// can, so the allocator is that of the C library.
func (r *Redis) ownClock() (before []string, err error) {
	const name = "libfaketime.so.1"
	found, _ := filepath.Glob("/usr/lib/*/faketime/" + name) // the pattern is right
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrNotInstalled)
	}
	env, err := locate("env")
	if err != nil {
		return nil, err
	}
	before = []string{
		"LD_PRELOAD=" + found[0] + ":libc.so.6", "FAKETIME_TIMESTAMP_FILE=" + filepath.Join(r.folder, clockFile),
		"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", r.path,
	}
	r.path = env
	return before, r.SetClock(0)
}

// SetClock sets the clock of a server with OwnClock: by how much it is ahead of the machine's, or behind.
func (r *Redis) SetClock(ahead time.Duration) error {
	path := filepath.Join(r.folder, clockFile)
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, "%+.3f\n", ahead.Seconds()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path) // the server never reads half of it
}

func (cfg RedisConfig) args(port int, folder string) []string {
	args := []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", folder,
		"--daemonize", "no", "--save", "",
	}
	if cfg.AppendOnly {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	return append(args, cfg.Args...)
}

// Addr is the server's HOST:PORT.
func (r *Redis) Addr() string { return r.addr }

// URL is the server's address as redis://HOST:PORT/0.
func (r *Redis) URL() string { return "redis://" + r.addr + "/0" }

// ready asks who answers. A server that still loads its data answers -LOADING to PING.
func (r *Redis) ready(ctx context.Context, pid int) error {
	return talk(ctx, r.addr, func(conn net.Conn) error {
		answers := bufio.NewReader(conn)
		if _, err := io.WriteString(conn, "PING\r\nINFO server\r\n"); err != nil {
			return err
		}
		pong, err := answers.ReadString('\n')
		if err != nil || !strings.HasPrefix(pong, "+PONG") {
			return fmt.Errorf("ping: %s", cmp.Or(strings.TrimSpace(pong), fmt.Sprint(err)))
		}
		for {
			line, err := answers.ReadString('\n')
			if err != nil {
				return fmt.Errorf("info: %w", err)
			}
			if id, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok {
				return expect("process", id, strconv.Itoa(pid))
			}
		}
	})
}

// talk opens a connection that ends with ctx, for f.
func talk(ctx context.Context, address string, f func(conn net.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	return f(conn)
}

// expect fails when another server than ours answers.
func expect(what, got, want string) error {
	if got != want {
		return fmt.Errorf("another server answers: %s %s, want %s", what, got, want)
	}
	return nil
}
