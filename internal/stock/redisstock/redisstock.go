package redisstock

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // the script is a file
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/stock"
)

//go:embed units.lua
var unitsLua string

const (
	keep     = 24 * time.Hour // that Redis remembers a SKU of which nothing is bought
	maxOwed  = 256            // settlings of one SKU that are remembered; what comes then ends by itself
	perOwed  = 4              // arguments of each
	leastArg = 4              // arguments before them
)

var script = redis.NewScript(unitsLua)

// Config configures a [Counter]. Its zero value is usable.
type Config struct {
	// Life is how long taken units are unavailable to others if the instance that took them sends no more requests;
	// default 5 s.
	Life time.Duration

	// Timeout is how long Redis may take to answer; default 2 s.
	Timeout time.Duration
}

// Counter is a [stock.Counter] in Redis. It is safe for concurrent use.
type Counter struct {
	rdb redis.UniversalClient
	cfg Config

	mu   sync.Mutex
	owed map[string][]settled // by SKU: what was not sent to Redis yet
}

var _ stock.Counter = (*Counter)(nil)

// settled is what became of a hold.
type settled struct {
	hold  stock.Hold
	level *stock.Level
}

// New returns a Counter on rdb, which [redisx.Check] must accept.
func New(rdb redis.UniversalClient, cfg Config) (*Counter, error) {
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("redisstock: %w", err)
	}
	cfg.Life = cmp.Or(cfg.Life, 5*time.Second)
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Second)
	if cfg.Life < time.Millisecond || cfg.Timeout < 0 {
		return nil, errors.New("redisstock: a time is negative, or less than a millisecond")
	}
	redisx.NameScript(script.Hash(), "units")
	return &Counter{rdb: rdb, cfg: cfg, owed: make(map[string][]settled)}, nil
}

// Take implements [stock.Counter].
func (c *Counter) Take(ctx context.Context, sku string, wanted []int64) (stock.Hold, error) {
	t := stock.Hold{SKU: sku, ID: rand.Text(), Seen: -1}
	reply, err := c.run(ctx, sku, t.ID, c.collect(sku), wanted)
	known := len(reply) != 1 || reply[0] >= 0
	if err == nil && known && len(reply) != 1+len(wanted) {
		err = fmt.Errorf("reply %v", reply)
	}
	if err != nil {
		c.Finish(t, nil) // it may have been taken
		return stock.Hold{}, fmt.Errorf("redisstock: take units of %q: %w", sku, err)
	}
	if !known {
		return t, nil
	}
	t.Seen, t.Granted = reply[0], make([]bool, len(wanted))
	for i, granted := range reply[1:] {
		t.Granted[i] = granted == 1
	}
	return t, nil
}

// Finish implements [stock.Counter].
func (c *Counter) Finish(t stock.Hold, level *stock.Level) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owed := c.owed[t.SKU]; len(owed) < maxOwed {
		c.owed[t.SKU] = append(owed, settled{t, level})
	}
}

// Flush implements [stock.Counter].
func (c *Counter) Flush(ctx context.Context, sku string) {
	if owed := c.collect(sku); len(owed) > 0 {
		_, _ = c.run(context.WithoutCancel(ctx), sku, "", owed, nil)
	}
}

// collect returns what was not sent to Redis of sku, and forgets it.
func (c *Counter) collect(sku string) []settled {
	c.mu.Lock()
	defer c.mu.Unlock()
	owed := c.owed[sku]
	delete(c.owed, sku)
	return owed
}

func (c *Counter) run(ctx context.Context, sku, id string, owed []settled, wanted []int64) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	args := make([]any, 0, leastArg+perOwed*len(owed)+len(wanted))
	args = append(args, keep.Milliseconds(), c.cfg.Life.Milliseconds(), id, len(owed))
	for _, o := range owed {
		var version, available any = "", ""
		if o.level != nil {
			version, available = o.level.Version, o.level.Available()
		}
		args = append(args, o.hold.ID, o.hold.Seen, version, available)
	}
	for _, q := range wanted {
		args = append(args, q)
	}
	return script.Run(ctx, c.rdb, keysOf(sku), args...).Int64Slice()
}
