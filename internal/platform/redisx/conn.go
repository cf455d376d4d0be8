package redisx

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// go-redis passes the deadline of a context to the connection, and ignores its cancellation during a read. Each call
// has a deadline of its own. So the deadline of a cancelled call identifies the connection that it reads from.

// conns are the open connections that [Interruptible] has returned.
var conns sync.Map

// calls makes deadlines unique.
var calls atomic.Uint64

// interruptible is a connection whose reads the end of a context ends.
type interruptible struct {
	net.Conn

	mu    sync.Mutex
	until time.Time // the deadline of a read
}

// Interruptible returns conn, so that a lone call of a [Caller] that is cancelled ends its read.
func Interruptible(conn net.Conn) net.Conn {
	c := &interruptible{Conn: conn}
	conns.Store(c, nil)
	return c
}

// SetReadDeadline implements [net.Conn]. It is how a cancelled call finds its connection.
func (c *interruptible) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetReadDeadline(t)
}

// Close implements [net.Conn].
func (c *interruptible) Close() error {
	conns.Delete(c)
	return c.Conn.Close()
}

// cut ends the reads whose deadline is end. go-redis drops their connections.
func cut(end time.Time) {
	conns.Range(func(key, _ any) bool {
		c := key.(*interruptible) //nolint:errcheck // Nothing else is in it.
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.until.Equal(end) {
			c.Conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // It fails if the connection is closed.
		}
		return true
	})
}

// bounded is a context with a deadline of its own. That of a context which ends sooner than asked would be its parent's.
type bounded struct {
	context.Context //nolint:containedctx // It is one.

	end time.Time
}

// Deadline implements [context.Context].
func (b bounded) Deadline() (time.Time, bool) { return b.end, true }

// leaving returns the context of a call that ends at end, or when ctx does. The end of ctx breaks the wait for the reply.
func leaving(ctx context.Context, end time.Time) (call context.Context, done func()) {
	end = sooner(ctx, end).Add(time.Duration(calls.Add(1) % 1_000_000))
	timed, cancel := context.WithDeadline(ctx, end) // go-redis waits for a connection until the context is done
	call = bounded{timed, end}
	if ctx.Done() == nil {
		return call, cancel
	}
	var over atomic.Bool
	stop := context.AfterFunc(ctx, func() {
		for !over.Load() { // it may not read yet, or on several connections
			cut(end)
			<-time.After(time.Millisecond)
		}
	})
	return call, func() {
		over.Store(true)
		stop()
		cancel()
	}
}

// sooner returns end, or the deadline of ctx if that is before.
func sooner(ctx context.Context, end time.Time) time.Time {
	if own, ok := ctx.Deadline(); ok && own.Before(end) {
		return own
	}
	return end
}
