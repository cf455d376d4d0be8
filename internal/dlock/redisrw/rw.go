package redisrw

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/dlock/semlock"
)

// Readers is how many readers can share a key. One more waits. It is a constant, because all clients of a store must
// agree on it, and because a writer takes as many permits.
const Readers = 64

// defaultPrefix begins every key in Redis.
const defaultPrefix = "shop:rwsem:"

// Config is the configuration of an [RW].
type Config struct {
	// TTL is how long Redis keeps a grant that is not renewed. So long does a dead reader block writers, and a dead
	// writer everybody. 0 means 30 s.
	TTL time.Duration

	// MaxHold ends a lease that long after it was granted. 0 means no limit.
	MaxHold time.Duration

	// Timeout bounds one round trip. 0 means 2 s; it is never more than TTL/4.
	Timeout time.Duration

	// Prefix begins every key and channel in Redis. Empty means "shop:rwsem:".
	Prefix string
}

// RW is [dlock.RWLocker] in Redis. Close it to end what it does in the background.
type RW struct {
	dlock.RWLocker

	permits *redissem.Semaphore
}

// New returns an RW on rdb, which it does not close. It refuses clients that repeat commands by themselves or ignore
// deadlines.
func New(rdb redis.UniversalClient, cfg Config) (*RW, error) {
	s, err := redissem.New(rdb, redissem.Config{
		Permits: Readers, TTL: cfg.TTL, MaxHold: cfg.MaxHold, Timeout: cfg.Timeout, Prefix: cmp.Or(cfg.Prefix, defaultPrefix),
	})
	if err != nil {
		return nil, fmt.Errorf("redisrw: %w", err)
	}
	return &RW{semlock.RWMutex(s, Readers), s}, nil
}

// Close ends all leases as lost, with the reason [dlock.Closed], and releases them. Then it waits until every uncertain
// acquisition has been released, or a TTL has passed. If ctx ends first, Close returns the error of ctx, and the rest
// expires by its TTL.
func (l *RW) Close(ctx context.Context) error { return l.permits.Close(ctx) }
