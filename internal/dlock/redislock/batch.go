package redislock

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// lanesPerNode is how many pipelines to one server are under way at a time: while
// it works on one, the next is written and the one before is read.
const lanesPerNode = 2

// batcher lets concurrent callers share round trips. It has some lanes for each
// master of a cluster, so that the calls for one do not wait for the replies of
// another. All calls for a key take the same lane.
type batcher struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // nil unless rdb is one
	timeout time.Duration

	seed maphash.Seed

	mu    sync.Mutex
	lanes map[laneKey]*lane
}

type laneKey struct {
	node string // empty without a cluster
	n    uint64
}

func newBatcher(rdb redis.UniversalClient, timeout time.Duration) *batcher {
	b := &batcher{rdb: rdb, timeout: timeout, seed: maphash.MakeSeed(), lanes: map[laneKey]*lane{}}
	b.cluster, _ = rdb.(*redis.ClusterClient)
	return b
}

// start makes a call whose reply the caller waits for later. All calls with the
// same keys take the same lane while their slot stays where it is.
func (b *batcher) start(ctx context.Context, s script, keys []string, args ...any) *call {
	at := laneKey{n: maphash.String(b.seed, keys[0]) % lanesPerNode}
	if b.cluster != nil {
		if master, err := b.cluster.MasterForKey(ctx, keys[0]); err == nil {
			at.node = master.Options().Addr
		}
	}
	b.mu.Lock()
	l := b.lanes[at]
	if l == nil {
		l = &lane{rdb: b.rdb, timeout: b.timeout}
		b.lanes[at] = l
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
