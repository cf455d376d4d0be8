package zookeeper

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// Status returns the answer of one server to the command srvr, with its version and its mode, outside of any session. It
// waits at most a second.
func (cfg Config) Status(ctx context.Context, server string) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := cfg.dial(ctx, "tcp", server)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // the answer counts
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	if text = string(answer); err == nil && !strings.Contains(text, "Mode: ") {
		err = errors.New("zookeeper: the server does not answer srvr: " + strings.TrimSpace(text))
	}
	return text, err
}
