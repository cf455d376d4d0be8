package redisindex

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/timeout"
)

// Claim implements [timeout.Index]. It returns 512 timers at most.
func (x *Index) Claim(ctx context.Context, s timeout.Shard, limit int) (timeout.Claim, error) {
	k := x.keysOf(s)
	reply, err := claimScript.Run(ctx, x.rdb, []string{k.pending}, []any{max(0, min(limit, maxBatch))})
	if err != nil {
		return timeout.Claim{}, x.named("claim", s, err)
	}
	c, err := readClaim(reply)
	return c, x.named("claim", s, err)
}

func readClaim(reply any) (c timeout.Claim, err error) {
	list, _ := reply.([]any)
	if len(list) < 2 || len(list)%2 != 0 {
		return c, fmt.Errorf("reply %v", reply)
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i], _ = v.(string)
	}
	if c.Now, err = readTime(texts[0]); err != nil {
		return c, err
	}
	if texts[1] != "" {
		if c.Next, err = readTime(texts[1]); err != nil {
			return c, err
		}
	}
	for i := 2; i < len(texts); i += 2 {
		at, err := readTime(texts[i+1])
		if err != nil {
			return timeout.Claim{}, err
		}
		c.Timers = append(c.Timers, timeout.Entry{ID: texts[i], At: at})
	}
	return c, nil
}

func readTime(text string) (time.Time, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err
}
