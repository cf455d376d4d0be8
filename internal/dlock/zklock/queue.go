package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/zookeeper"
)

// queue is what a [Locker] does with ZooKeeper: nodes in a row, each of which waits for the node before it.
type queue struct {
	s       *zookeeper.Session
	cfg     Config
	renewer *driver.Renewer

	uncontended uncontended
	confirms    singleflight.Group

	mu     sync.Mutex
	grants map[string]*grant                  // by the ID of the node
	next   map[string]map[chan event]struct{} // who waits for the node with this path
}

// claim is one call of Acquire or TryAcquire.
type claim struct {
	key, dir string
	backend  any
}

func newQueue(s *zookeeper.Session, cfg Config) *queue {
	q := &queue{s: s, cfg: cfg, grants: map[string]*grant{}, next: map[string]map[chan event]struct{}{}}
	q.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: q.ttl(), Keeps: q.ttl, Renew: q.renew})
	s.OnClose(func() { q.renewer.Shut() })
	return q
}

// ttl is how long a confirmation of the session counts, by the timeout that the servers have
// chosen. See the package comment.
func (q *queue) ttl() time.Duration {
	if q.s.Raised() {
		return q.s.Timeout() * 2 / 5
	}
	return q.s.Timeout() * 3 / 5
}

// fallbackPoll is the longest pause of a waiter between two polls.
func (q *queue) fallbackPoll() time.Duration { return min(time.Second, q.ttl()/4) }

// errGone means that the node of a waiter is gone: deleted, or with its session.
var errGone = errors.New("zklock: the place in the queue is gone")

// acquire takes c, and waits for it.
func (q *queue) acquire(ctx context.Context, c claim) (*dlock.Lease, error) {
	return caused(ctx)(q.enter(ctx, c))
}

// try takes c if nobody is in the way.
func (q *queue) try(ctx context.Context, c claim) (*dlock.Lease, error) {
	return caused(ctx)(q.enterFree(ctx, c))
}

// caused adds the cause of ctx to an error that says that ctx has ended. It comes last, because a cause can look like
// an answer of the servers.
func caused(ctx context.Context) func(*dlock.Lease, error) (*dlock.Lease, error) {
	return func(lease *dlock.Lease, err error) (*dlock.Lease, error) {
		if ended := ctx.Err(); ended != nil && errors.Is(err, ended) && !errors.Is(err, context.Cause(ctx)) {
			err = fmt.Errorf("%w: %w", err, dlock.Ended(ctx))
		}
		return lease, err
	}
}
