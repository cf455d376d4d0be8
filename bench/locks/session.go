package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/bench/measure"
)

// session is the clients of one run.
type session []*client

// open makes n clients of s, each as a process has it. They are closed if one fails.
func open(ctx context.Context, on *servers, s subject, n int) (session, error) {
	var all session
	for range n {
		c, err := s.open(ctx, on)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", s.name, err), all.close(ctx))
		}
		all = append(all, c)
	}
	return all, nil
}

// close ends the clients, with their connections.
func (all session) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var errs []error
	for _, c := range all {
		if c.close != nil {
			errs = append(errs, c.close(ctx))
		}
	}
	return errors.Join(errs...)
}

// sent counts, from before to after, the commands that clients sent, and all calls. The server counts the commands of
// scripts as calls too. No script here calls a command that clients send, so names distinguish them.
func sent(before, after measure.Usage, s subject) (commands, all int64) {
	for name, n := range after.Calls {
		n -= before.Calls[name]
		switch name {
		case "info":
			continue // is ours
		case "eval", "evalsha", "ping", "subscribe", "hello", "client|setinfo", s.sends:
			commands += n
		}
		all += n
	}
	return commands, all
}
