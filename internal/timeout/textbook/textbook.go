// Package textbook is the common delay queue on Redis, as a test subject. It is a sorted set by due time, with
// ZRANGEBYSCORE to find due timers and ZREM to claim one.
//
// A test shows what that queue loses. After the ZREM only the consumer has the timer, until it is handled: a crash
// in between loses it, and no process detects that. [timeout.Queue] takes the same risk in its index, but it also
// has a row: TestConsumersKilled in package faults kills consumers, and no timer is lost.
package textbook

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Queue is a delay queue in one sorted set.
type Queue struct {
	Redis redis.UniversalClient
	Key   string
}

// Schedule makes id due at a moment.
func (q Queue) Schedule(ctx context.Context, id string, at time.Time) error {
	return q.Redis.ZAdd(ctx, q.Key, redis.Z{Score: float64(at.UnixMilli()), Member: id}).Err()
}

// Poll removes at most limit ids that are due, and returns them. Due is decided by
// the clock of the caller.
func (q Queue) Poll(ctx context.Context, limit int64) ([]string, error) {
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	due, err := q.Redis.ZRangeByScore(ctx, q.Key, &redis.ZRangeBy{Min: "-inf", Max: now, Count: limit}).Result()
	if err != nil {
		return nil, err
	}
	var mine []string
	for _, id := range due { // other consumers have seen the same ones
		removed, err := q.Redis.ZRem(ctx, q.Key, id).Result()
		if err != nil {
			return mine, err
		}
		if removed == 1 {
			mine = append(mine, id)
		}
	}
	return mine, nil
}
