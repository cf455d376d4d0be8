package testbedtest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// RoundTrips is a hook of a Redis client. It is called with the commands of each round trip, one or a pipeline. They
// reach the server when it calls send: at once, late, or never. Greetings of new connections are among them.
type RoundTrips func(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error

// DialHook implements [redis.Hook].
func (RoundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (h RoundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	send := func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 1 {
			return next(ctx, cmds[0]) // the error as it is, which callers compare
		}
		var errs []error
		for _, cmd := range cmds {
			errs = append(errs, next(ctx, cmd))
		}
		return errors.Join(errs...)
	}
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, []redis.Cmder{cmd}, send) }
}

// ProcessPipelineHook implements [redis.Hook].
func (h RoundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return h(ctx, cmds, next) }
}

// Lose gives commands the error of a round trip that failed, and returns it.
func Lose(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// Late returns copies of commands, to be sent after their caller has given them up.
func Late(ctx context.Context, cmds []redis.Cmder) (late []redis.Cmder) {
	for _, cmd := range cmds {
		late = append(late, redis.NewCmd(context.WithoutCancel(ctx), cmd.Args()...))
	}
	return late
}

// Dials is a hook of a Redis client that is called with each new connection.
type Dials func(net.Conn)

// DialHook implements [redis.Hook].
func (d Dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := next(ctx, network, addr)
		if err == nil {
			d(c)
		}
		return c, err
	}
}

// ProcessHook implements [redis.Hook].
func (Dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (Dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// LateReplies is a hook that delivers every reply late, and sends nothing once it is cut. A server that lacks a script
// replies at once: the call is sent again, and both have to fit into its limit.
func LateReplies(delay time.Duration, cut *atomic.Bool) RoundTrips {
	return func(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
		if cut.Load() {
			return Lose(cmds, net.ErrClosed)
		}
		err := send(ctx, cmds)
		if !redis.HasErrorPrefix(err, "NOSCRIPT") {
			<-time.After(delay)
		}
		return err
	}
}
