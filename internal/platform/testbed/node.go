package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// startNode runs one member of a Sentinel or a Cluster. Its settings are in a file, unlike those of StartRedis,
// because a member stores its role there, for the time after Restart. The function settings is called for each port
// that is tried.
func startNode(ctx context.Context, name string, settings func(port int) ([]string, error), args ...string) (*Redis, error) {
	process, err := openProcess(ctx, name, "redis-server")
	if err != nil {
		return nil, err
	}
	r := &Redis{Process: process}
	process.ready = r.ready
	file := filepath.Join(process.folder, "redis.conf")
	process.args = append([]string{file}, args...)
	return r, process.startOn(ctx, func(port int) error {
		r.addr = loopback(port)
		lines, err := settings(port)
		if err != nil {
			return err
		}
		lines = append([]string{
			"bind 127.0.0.1", fmt.Sprintf("port %d", port), "dir " + strconv.Quote(process.folder), "daemonize no",
		}, lines...)
		return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	})
}

// replicating are the settings of a data node. A replica does not wait for
// company before it is sent its first copy.
func replicating() []string {
	return []string{`save ""`, "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"}
}

// ask puts questions to the server on a connection of their own, so that nothing
// of this package stays behind in an idle program.
func (r *Redis) ask(ctx context.Context, questions func(ctx context.Context, c *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	c := redis.NewClient(askOptions(r.addr))
	defer c.Close()
	if err := questions(ctx, c); err != nil {
		return fmt.Errorf("%s at %s: %w", r.name, r.addr, err)
	}
	return nil
}

func askOptions(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, PoolSize: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// expectReplication fails unless the server describes its role in replication with
// every one of the lines.
func expectReplication(ctx context.Context, c *redis.Client, lines ...string) error {
	info, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	return expectLines(info, lines...)
}

func expectLines(text string, lines ...string) error {
	for _, line := range lines {
		if !strings.Contains("\r\n"+text, "\n"+line+"\r") {
			return fmt.Errorf("not yet %s", line)
		}
	}
	return nil
}

// until repeats a question until the answer is nil. It is bounded as a start is. The error names what is not so.
func until(ctx context.Context, what string, question func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	pause := time.NewTicker(5 * pollInterval)
	defer pause.Stop()
	for {
		err := question(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}

// servers are the servers of a group.
type servers[S interface {
	io.Closer
	Addr() string
}] struct{ nodes []S }

// Nodes are the servers, to be paused, killed and restarted.
func (s *servers[S]) Nodes() []S { return slices.Clone(s.nodes) }

// Addrs are the addresses of the servers, as HOST:PORT.
func (s *servers[S]) Addrs() []string {
	addrs := make([]string, len(s.nodes))
	for i, server := range s.nodes {
		addrs[i] = server.Addr()
	}
	return addrs
}

// Close kills the servers and removes what they wrote.
func (s *servers[S]) Close() error { return closeAll(s.nodes) }

// closeAll closes what has been started of a group.
func closeAll[S io.Closer](nodes []S) error {
	var errs []error
	for _, node := range nodes {
		errs = append(errs, node.Close())
	}
	return errors.Join(errs...)
}
