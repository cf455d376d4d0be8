package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
)

// prefix begins every key, after the "rate:" that the library puts before it.
const prefix = "shop:"

// Config is the configuration of [Limiter].
type Config struct {
	// Rate is how many operations a key may begin per Period, in the long run. It is required.
	Rate int

	// Period is the unit of Rate. 0 means 1 s.
	Period time.Duration

	// Burst is how many operations a key that was idle may begin at once. 0 means Rate.
	Burst int

	// Timeout bounds a call to Redis: no operation waits longer for its verdict.
	// 0 means 100 ms.
	Timeout time.Duration

	// Cooldown is how long Redis is left alone after it failed. 0 means 1 s.
	Cooldown time.Duration

	// MaxKeys bounds the memory that the local buckets may take. 0 means 10,000.
	MaxKeys int

	// Instances returns how many instances share the rate while Redis is unavailable: the
	// local bucket is that much smaller, down to one operation. Nil means 1.
	Instances func() int
}

// Verdict has whether a key may continue, and what to report to its owner.
type Verdict struct {
	Allowed    bool
	Limit      int           // the burst
	Remaining  int           // how many could begin now
	RetryAfter time.Duration // until one may begin; 0 if this one may
	ResetAfter time.Duration // until Limit could begin at once
	Local      bool          // decided without Redis
}

// Limiter bounds how often each key may begin an operation, over all instances, by
// the generic cell rate algorithm (GCRA) in Redis. While Redis is unavailable each
// instance decides by token buckets of its own. It is safe for concurrent use.
type Limiter struct {
	cfg     Config
	limiter *redis_rate.Limiter // nil: always local
	limit   redis_rate.Limit
	full    time.Duration // until a burst can begin after a burst
	local   buckets
	away    atomic.Int64 // until when Redis is left alone, in nanoseconds after epoch
	epoch   time.Time
	refused atomic.Int64
}

// New returns a Limiter on rdb, which it does not close, or local ones if rdb is
// nil. It refuses a client that repeats commands by itself, which would count one
// operation twice, or that ignores the deadlines of contexts.
func New(rdb redis.UniversalClient, cfg Config) (*Limiter, error) {
	cfg.Period = cmp.Or(cfg.Period, time.Second)
	cfg.Burst = cmp.Or(cfg.Burst, cfg.Rate)
	cfg.Timeout = cmp.Or(cfg.Timeout, 100*time.Millisecond)
	cfg.Cooldown = cmp.Or(cfg.Cooldown, time.Second)
	cfg.MaxKeys = cmp.Or(cfg.MaxKeys, 10_000)
	if cfg.Rate < 1 || cfg.Burst < 1 || cfg.Period < 0 {
		return nil, fmt.Errorf("ratelimit: rate of %d per %v with a burst of %d", cfg.Rate, cfg.Period, cfg.Burst)
	}
	r := &Limiter{
		cfg:   cfg,
		limit: redis_rate.Limit{Rate: cfg.Rate, Burst: cfg.Burst, Period: cfg.Period},
		full:  cfg.Period * time.Duration(cfg.Burst) / time.Duration(cfg.Rate),
		local: buckets{most: cfg.MaxKeys},
		epoch: time.Now(),
	}
	if rdb == nil {
		return r, nil
	}
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	r.limiter = redis_rate.NewLimiter(pipelined{rdb, redisx.NewCaller(rdb, cfg.Timeout)})
	return r, nil
}

// Refused returns how many operations were refused by this Limiter.
func (r *Limiter) Refused() int64 { return r.refused.Load() }

// Allow asks whether key may begin one operation now, and counts it if so. It
// waits for Redis, for Config.Timeout at most, and decides alone if that does not
// answer: then the verdict is Local. It fails only with the cause of ctx.
func (r *Limiter) Allow(ctx context.Context, key string) (v Verdict, err error) {
	defer func() {
		if err == nil && !v.Allowed {
			r.refused.Add(1)
		}
	}()
	if ctx.Err() != nil {
		return Verdict{}, context.Cause(ctx)
	}
	if r.limiter == nil || !r.probe() {
		return r.alone(key), nil
	}
	call, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	res, err := r.limiter.Allow(call, prefix+key, r.limit)
	if err == nil && res.ResetAfter > 2*r.full { // the clock of Redis was set back after the key had its time
		if err = r.limiter.Reset(call, prefix+key); err == nil {
			res, err = r.limiter.Allow(call, prefix+key, r.limit)
		}
	}
	switch {
	case ctx.Err() != nil:
		return Verdict{}, context.Cause(ctx)
	case err != nil:
		r.away.Store(int64(time.Since(r.epoch) + r.cfg.Cooldown))
		return r.alone(key), nil
	}
	r.away.Store(0)
	return Verdict{
		Allowed: res.Allowed > 0, Limit: r.cfg.Burst, Remaining: res.Remaining,
		RetryAfter: max(0, res.RetryAfter), ResetAfter: res.ResetAfter,
	}, nil
}

// probe reports whether to ask Redis. After a failure it sends one caller per cooldown.
func (r *Limiter) probe() bool {
	until := r.away.Load()
	if until == 0 {
		return true
	}
	now := int64(time.Since(r.epoch))
	return now >= until && r.away.CompareAndSwap(until, now+int64(r.cfg.Cooldown))
}

// alone decides without Redis.
func (r *Limiter) alone(key string) Verdict {
	instances := 1
	if r.cfg.Instances != nil {
		instances = max(1, r.cfg.Instances())
	}
	perSecond := float64(r.cfg.Rate) / r.cfg.Period.Seconds() / float64(instances)
	return r.local.allow(key, perSecond, max(1, r.cfg.Burst/instances))
}
