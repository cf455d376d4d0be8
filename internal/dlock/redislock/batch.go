package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// batcher lets concurrent callers share round trips. It has a lane for each master
// of a cluster, so that the calls for one do not wait for the replies of another;
// without a cluster it has one. (Two lanes per server cost a fifth more work, for
// smaller pipelines, and were no faster.)
type batcher struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // nil unless rdb is one
	timeout time.Duration

	mu    sync.Mutex
	lanes map[string]*lane // by node; empty without a cluster
}

func newBatcher(rdb redis.UniversalClient, timeout time.Duration) *batcher {
	b := &batcher{rdb: rdb, timeout: timeout, lanes: map[string]*lane{}}
	b.cluster, _ = rdb.(*redis.ClusterClient)
	return b
}

// start makes a call whose reply the caller waits for later. All calls with the
// same keys take the same lane while their slot stays where it is.
func (b *batcher) start(ctx context.Context, s script, keys []string, args ...any) *call {
	node := ""
	if b.cluster != nil {
		if master, err := b.cluster.MasterForKey(ctx, keys[0]); err == nil {
			node = master.Options().Addr
		}
	}
	b.mu.Lock()
	l := b.lanes[node]
	if l == nil {
		l = &lane{rdb: b.rdb, timeout: b.timeout}
		b.lanes[node] = l
	}
	b.mu.Unlock()
	return l.start(ctx, s, keys, args...)
}

// run makes one call. The reply is nil with an error. The time is when the call
// was sent, or a little before. It returns when ctx ends, even while the call is
// under way: then its outcome is unknown, unless the error is errUnsent.
func (b *batcher) run(ctx context.Context, s script, keys []string, args ...any) (any, time.Time, error) {
	return b.start(ctx, s, keys, args...).wait()
}
