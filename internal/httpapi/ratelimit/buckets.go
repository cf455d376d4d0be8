package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// buckets are token buckets by key, at most `most` of them. They are kept in two generations. When the younger one has
// half of that, it becomes the elder, and unused keys of the previous elder are forgotten. (A forgotten key returns
// with a full bucket: the bound on memory comes before the rate.)
type buckets struct {
	most int

	mu             sync.Mutex
	younger, elder map[string]*rate.Limiter
}

// allow takes one token of key, from a bucket of that speed and size.
func (b *buckets) allow(key string, perSecond float64, burst int) Verdict {
	bucket := b.of(key, perSecond, burst)
	now := time.Now()
	if bucket.Burst() != burst || bucket.Limit() != rate.Limit(perSecond) { // the number of instances has changed
		bucket.SetLimitAt(now, rate.Limit(perSecond))
		bucket.SetBurstAt(now, burst)
	}
	v := Verdict{Allowed: bucket.AllowN(now, 1), Limit: burst, Local: true}
	tokens := bucket.TokensAt(now)
	after := func(missing float64) time.Duration {
		return max(0, time.Duration(missing/perSecond*float64(time.Second)))
	}
	v.Remaining, v.ResetAfter = max(0, int(tokens)), after(float64(burst)-tokens)
	if !v.Allowed {
		v.RetryAfter = after(1 - tokens)
	}
	return v
}

// of returns the bucket of key, a full one if it is new.
func (b *buckets) of(key string, perSecond float64, burst int) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bucket, ok := b.younger[key]; ok {
		return bucket
	}
	bucket, ok := b.elder[key]
	if !ok {
		bucket = rate.NewLimiter(rate.Limit(perSecond), burst)
	}
	if b.younger == nil || len(b.younger) >= max(1, b.most/2) {
		b.elder, b.younger = b.younger, map[string]*rate.Limiter{}
	}
	b.younger[key] = bucket
	return bucket
}
