package redisclient

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
)

// replacing is a hook of a client of one address, where another server may have taken over. If a reply says [redisx.WrongServer],
// all connections that are open are used no more, and new ones are opened. go-redis itself drops one connection per
// refusal, and only for one wording of one error.
type replacing struct{ latest *atomic.Int64 } // generation of connections

var errReplaced = errors.New("redisclient: the connection led to a server that does not serve")

// DialHook implements [redis.Hook].
func (r replacing) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		generation := r.latest.Load()
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &replacedConn{Conn: redisx.Interruptible(conn), raw: conn, latest: r.latest, generation: generation}, nil
	}
}

// ProcessHook implements [redis.Hook].
func (r replacing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		generation := r.latest.Load()
		err := next(ctx, cmd)
		if err != nil {
			r.check(generation, err)
		} else if call, ok := cmd.(redisx.Once); ok { // perhaps of a script that serves several calls, and has an error for each
			replies, _ := call.Val().([]any)
			for _, reply := range replies {
				if failed, ok := reply.(error); ok {
					r.check(generation, failed)
				}
			}
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (r replacing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		generation := r.latest.Load()
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if failed := cmd.Err(); failed != nil {
				r.check(generation, failed)
			}
		}
		return err
	}
}

// check begins the next generation if the error of a command, which was sent on a connection of this generation, says
// that the server is the wrong one.
func (r replacing) check(generation int64, err error) {
	if redisx.WrongServer(err) {
		r.latest.CompareAndSwap(generation, generation+1)
	}
}

// replacedConn is a connection that the pool drops after its generation is over. A command that has it is not interrupted.
type replacedConn struct {
	net.Conn

	raw        net.Conn
	latest     *atomic.Int64
	generation int64
}

// SyscallConn implements [syscall.Conn]: the pool asks for it before it lends a connection, and drops one that fails.
func (c *replacedConn) SyscallConn() (syscall.RawConn, error) {
	if c.generation != c.latest.Load() {
		return nil, errReplaced
	}
	if conn, ok := c.raw.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return unread{}, nil
}

// unread says that nothing has arrived. With TLS, bytes that have may belong to no reply.
type unread struct{ syscall.RawConn }

// Read implements [syscall.RawConn].
func (unread) Read(func(uintptr) bool) error { return nil }
