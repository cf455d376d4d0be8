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

	mu     sync.Mutex
	silent bool          // the last call timed out: until one is answered they are made one by one
	probe  chan struct{} // closed when the one that is on its way has ended; nil if there is none
}

// call runs a script on this server alone. It returns in time, whatever the server and
// the network do: the end of ctx keeps it from being sent, and nothing else. A server
// that is silent gets one call at a time, which the others wait for, and fail with it. So
// a server which is stopped costs one connection, and nobody whose outcome does not
// depend on it, and is back as soon as it answers.
func (n *node) call(ctx context.Context, s *redis.Script, keys []string, args ...any) (any, error) {
	probe, err := n.admit(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.limit)
	defer cancel()
	reply, err := s.EvalSha(ctx, n.rdb, keys, args...).Result()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.Eval(ctx, n.rdb, keys, args...).Result()
	}
	n.learn(probe, err)
	if err != nil && refused(err) {
		err = fmt.Errorf("%w: %w", errUnsent, err)
	}
	return reply, err
}

// admit waits until a call may be made, and reports whether it is one that the others
// wait for.
func (n *node) admit(ctx context.Context) (probe bool, err error) {
	n.mu.Lock()
	other := n.probe
	if n.silent && other == nil {
		n.probe, probe = make(chan struct{}), true
	}
	wait := n.silent && other != nil
	n.mu.Unlock()
	if !wait {
		return probe, nil
	}
	select {
	case <-other: // within the time of a call
	case <-ctx.Done():
		return false, errSilent
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silent {
		return false, errSilent
	}
	return false, nil
}

// learn ends a call.
func (n *node) learn(probe bool, err error) {
	late, ok := errors.AsType[net.Error](err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = ok && late.Timeout()
	if probe {
		close(n.probe)
		n.probe = nil
	}
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
