package redisx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// go-redis passes the deadline of a context to the connection, and ignores its cancellation during a read. Each call
// has a deadline of its own. So the deadline of a cancelled call identifies the connection that it reads from.

// conns are the open connections of all clients of [New].
var conns sync.Map

// calls makes deadlines unique.
var calls atomic.Uint64

// cut ends the reads whose deadline is end, and reports whether there are any. go-redis drops their connections.
func cut(end time.Time) (found bool) {
	conns.Range(func(key, _ any) bool {
		c := key.(*replacedConn) //nolint:errcheck // Nothing else is in it.
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.until.Equal(end) {
			found = true
			c.Conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // It fails if the connection is closed.
		}
		return true
	})
	return found
}

// bounded is a context that ends with another one, and has a deadline without a timer. The timer would wake a thread. For
// go-redis and for a connection the deadline is enough.
type bounded struct {
	context.Context //nolint:containedctx // It is one.

	end time.Time
}

// Deadline implements [context.Context].
func (b bounded) Deadline() (time.Time, bool) { return b.end, true }

// leaving returns the context of a call that ends at end, or when ctx does. The end of ctx breaks the wait for the reply.
func leaving(ctx context.Context, end time.Time) (call context.Context, done func()) {
	if own, ok := ctx.Deadline(); ok && own.Before(end) {
		end = own
	}
	end = end.Add(time.Duration(calls.Add(1) % 1_000_000))
	call = bounded{ctx, end}
	if ctx.Done() == nil {
		return call, func() {}
	}
	var over atomic.Bool
	stop := context.AfterFunc(ctx, func() {
		for !over.Load() && !cut(end) { // it does not read yet
			<-time.After(time.Millisecond)
		}
	})
	return call, func() {
		over.Store(true)
		stop()
	}
}
