package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

var (
	// errUnsent says that a call has not been sent: it has no effect.
	errUnsent = errors.New("not sent")

	// errSilent is the errUnsent of a server that did not answer the last call in time. It is a timeout, as that call was.
	errSilent = fmt.Errorf("%w: the server is silent: %w", errUnsent, os.ErrDeadlineExceeded)
)

// node is one of the servers.
//
// A server with eight unanswered calls gets no further call until it responds. A server whose last call timed out
// gets one call at a time; calls that wait for that count as not sent. So a paused server costs a few
// connections and no goroutines beyond the attempts sent to it, and votes again as soon as it can.
type node struct {
	rdb      redis.UniversalClient
	limit    time.Duration // of a call
	rollback *driver.Rollback

	mu         sync.Mutex
	silent     bool         // the last call timed out
	unanswered int          // calls that were sent since the last one was answered
	queue      []chan error // of calls that wait to be sent
}

// maxUnanswered is how many calls are sent to a server before it answers one of them.
const maxUnanswered = 8

// call runs a script on this server alone. It returns in time, whatever the server and the network do. The end of ctx
// only prevents the sending. A server that stops answering gets a few more calls, for which the others wait. After
// that it gets one call at a time, with which the waiting calls fail. So a paused server costs some connections, and
// no caller whose outcome does not depend on it. It has recovered as soon as it answers.
func (n *node) call(ctx context.Context, s redisx.Script, keys []string, args ...any) (any, error) {
	if err := n.admit(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.limit)
	defer cancel()
	reply, err := s.Run(ctx, n.rdb, keys, args)
	n.learn(err)
	if err != nil && redisx.Refused(err) {
		err = fmt.Errorf("%w: %w", errUnsent, err)
	}
	return reply, err
}

// admit waits until a call may be sent, for as long as one may take.
func (n *node) admit(ctx context.Context) error {
	n.mu.Lock()
	if n.next() {
		n.mu.Unlock()
		return nil
	}
	turn := make(chan error, 1)
	n.queue = append(n.queue, turn)
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, n.limit)
	defer cancel()
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.queue, turn); i >= 0 {
		n.queue = slices.Delete(n.queue, i, i+1)
		return errSilent
	}
	return <-turn
}

// next counts a call in, if one may be sent. It is called under mu.
func (n *node) next() bool {
	if n.unanswered >= maxUnanswered || n.silent && n.unanswered > 0 {
		return false
	}
	n.unanswered++
	return true
}

// learn ends a call, and says to others what that means for them.
func (n *node) learn(err error) {
	late, ok := errors.AsType[net.Error](err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = ok && late.Timeout()
	if n.silent {
		n.unanswered = max(0, n.unanswered-1)
		for _, turn := range n.queue {
			turn <- errSilent
		}
		n.queue = nil
		return
	}
	n.unanswered = 0
	for len(n.queue) > 0 && n.next() {
		n.queue[0] <- nil
		n.queue = n.queue[1:]
	}
}

// verdicts runs a script of each.lua.
func (n *node) verdicts(ctx context.Context, s redisx.Script, want int, keys []string, args []any) ([]int64, error) {
	reply, err := n.call(ctx, s, keys, args...)
	if err != nil {
		return nil, err
	}
	return redisx.Ints(reply, want)
}
