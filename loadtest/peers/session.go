package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/loadtest/peers/bench"
)

// session is the clients of one run.
type session struct {
	clients []*client
	pools   []*redis.Client
}

// open makes n clients of s with a pool each. All subjects have the same options.
func open(server *bench.Server, s subject, n int) (*session, error) {
	o := &session{}
	for range n {
		rdb := server.Client()
		o.pools = append(o.pools, rdb)
		c, err := s.open(rdb)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		o.clients = append(o.clients, c)
	}
	return o, nil
}

// close ends the clients, and then their connections.
func (o *session) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var failed error
	for i, c := range o.clients {
		if c.close != nil {
			if err := c.close(ctx); err != nil {
				failed = err
			}
		}
		o.pools[i].Close()
	}
	return failed
}

// sent counts, from before to after, what clients have sent, and all calls. Scripts
// call commands too, and the server counts both in one: what clients send is known
// by name, as no script here calls one of these.
func sent(before, after bench.Usage, s subject) (commands, all int64) {
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
