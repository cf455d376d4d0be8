package memindex

import (
	"context"
	"sync"
	"time"

	"example.com/shop/internal/timeout"
)

// Config is the configuration of an [Index].
type Config struct {
	// Now is the clock of the index; nil means time.Now. Tests let it be wrong.
	Now func() time.Time
}

// Index keeps entries in memory. It is safe for concurrent use.
type Index struct {
	now func() time.Time

	mu    sync.Mutex
	parts map[timeout.Shard]*part
}

var (
	_ timeout.Index = (*Index)(nil)
	_ timeout.Local = (*Index)(nil)
)

// New returns an empty index.
func New(cfg Config) *Index {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Index{now: cfg.Now, parts: map[timeout.Shard]*part{}}
}

// Local implements [timeout.Local].
func (x *Index) Local() bool { return true }

// Shards implements [timeout.Index].
func (x *Index) Shards(kind, partition string) []timeout.Shard {
	return []timeout.Shard{{Kind: kind, Partition: partition}}
}

// GrantPass implements [timeout.Index].
func (x *Index) GrantPass(ctx context.Context, kind, partition string, every time.Duration) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Partition: partition})
	defer p.mu.Unlock()
	if !p.passed.IsZero() && time.Since(p.passed) < every {
		return false, nil
	}
	p.passed = time.Now()
	return true, nil
}

// Pending implements [timeout.Index].
func (x *Index) Pending(ctx context.Context, kind, partition string) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	p := x.part(timeout.Shard{Kind: kind, Partition: partition})
	defer p.mu.Unlock()
	return len(p.pending), nil
}

// Run implements [timeout.Index]. There is nothing to do.
func (x *Index) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Wipe loses everything, as FLUSHALL does to a server.
func (x *Index) Wipe() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.parts {
		p.mu.Lock()
		p.clear()
		p.mu.Unlock()
	}
}

// part returns a locked part.
func (x *Index) part(s timeout.Shard) *part {
	x.mu.Lock()
	p, ok := x.parts[s]
	if !ok {
		p = &part{}
		p.clear()
		x.parts[s] = p
	}
	x.mu.Unlock()
	p.mu.Lock()
	return p
}
