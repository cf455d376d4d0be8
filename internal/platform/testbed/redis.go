package testbed

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// attemptTimeout bounds one question to a server that may not be there yet.
const attemptTimeout = 5 * time.Second

// RedisConfig says how to run a Redis server. The zero value is a server that
// keeps everything in memory.
type RedisConfig struct {
	// Dir is the server's folder. Default: a temporary one, removed by Close.
	Dir string
	// AppendOnly makes every acknowledged write survive Kill and Restart.
	// Default: Restart comes back empty, as a cache does.
	AppendOnly bool
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
	process, err := openProcess(ctx, "redis", "redis-server", cfg.Dir)
	if err != nil {
		return nil, err
	}
	r := &Redis{Process: process}
	process.ready = r.ready
	return r, process.startOn(ctx, func(port int) error {
		r.addr = loopback(port)
		process.args = cfg.args(port, process.folder)
		return nil
	})
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
