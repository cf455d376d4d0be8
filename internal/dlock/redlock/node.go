package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
)

var (
	// errUnsent says that a call has not been sent: it has no effect.
	errUnsent = errors.New("not sent")

	// errSilent is the errUnsent of a server that did not answer the last call in time.
	errSilent = fmt.Errorf("%w: the server is silent", errUnsent)
)

// node is one of the servers.
type node struct {
	rdb   redis.UniversalClient
	limit time.Duration // of a call
	undo  *dlock.Undo

	mu      sync.Mutex
	silent  bool // the last call timed out: until one is answered they are made one by one
	probing bool // and one is on its way
}

// call runs a script on this server alone. It returns in time, whatever the server and
// the network do: ctx is not waited for, and only gives values. A server that is silent
// gets one call at a time, and all others fail at once, so that a server which is stopped
// costs neither connections nor goroutines, and is back as soon as it answers.
func (n *node) call(ctx context.Context, s *redis.Script, keys []string, args ...any) (any, error) {
	if !n.admit() {
		return nil, errSilent
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.limit)
	defer cancel()
	reply, err := s.EvalSha(ctx, n.rdb, keys, args...).Result()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.Eval(ctx, n.rdb, keys, args...).Result()
	}
	n.learn(err)
	if err != nil && refused(err) {
		err = fmt.Errorf("%w: %w", errUnsent, err)
	}
	return reply, err
}

func (n *node) admit() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.silent {
		return true
	}
	if n.probing {
		return false
	}
	n.probing = true
	return true
}

func (n *node) learn(err error) {
	late, ok := errors.AsType[net.Error](err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent, n.probing = ok && late.Timeout(), false
}

// refused reports whether err proves that the call had no effect: the server answered
// with an error, or the request never left. The scripts write the lock last.
func refused(err error) bool {
	if _, ok := errors.AsType[redis.Error](err); ok {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// verdicts runs a script of each.lua.
func (n *node) verdicts(ctx context.Context, s *redis.Script, want int, keys []string, args []any) ([]int64, error) {
	reply, err := n.call(ctx, s, keys, args...)
	if err != nil {
		return nil, err
	}
	values, _ := reply.([]any)
	all := make([]int64, 0, want)
	for _, v := range values {
		if verdict, ok := v.(int64); ok {
			all = append(all, verdict)
		}
	}
	if len(all) != want {
		return nil, fmt.Errorf("reply %v", reply)
	}
	return all, nil
}
