// Package redislog implements the log of package events as a Redis Stream.
//
// All instances append to one stream and read it, so all of them have the same events in the same order. A connection
// that breaks loses nothing: the reader continues after the last entry that it has. Each entry names the previous one,
// so a reader notices entries that were trimmed unread, or removed by a restart, a FLUSHALL or a failover. If no reader
// has the last entries that a failover removed, their writer finds that out when it appends the next one, and marks it.
//
// The stream keeps about [Size] entries of 1 to 64 events each. An order of one item is some 300 bytes, so the stream takes
// from 1 MB to 40 MB.
package redislog

import (
	"context"
	_ "embed" // the scripts are files
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events"
	"example.com/shop/internal/platform/redisx"
)

const (
	// Size is how many entries the stream keeps, about.
	Size = 2048

	// key is the stream. Keys of one shop share a slot of a cluster.
	key = "shop:events:{all}"

	// block is how long the server waits for an entry. After that the reader checks that the stream still continues.
	block = 2 * time.Second

	// pageSize is how many entries are read in one call.
	pageSize = 128

	// callTime bounds a call, in addition to block.
	callTime = time.Second

	// remember is how long the server knows the number of a writer's latest batch. A call that comes later than that may
	// append a batch again, and marks it.
	remember = 24 * time.Hour
)

//go:embed append.lua
var appendSource string

//go:embed begin.lua
var beginSource string

var (
	appendScript = redis.NewScript(appendSource)
	beginScript  = redis.NewScript(beginSource)
)

// Log is an [events.Log] on Redis. It is safe for concurrent use.
type Log struct{ rdb redis.UniversalClient }

var _ events.Log = (*Log)(nil)

// New returns a log on rdb, which stays the caller's. A reader occupies one connection of it. It refuses the clients that
// [redisx.Check] refuses.
func New(rdb redis.UniversalClient) (*Log, error) {
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("redislog: %w", err)
	}
	return &Log{rdb}, nil
}

// Append implements [events.Log].
func (l *Log) Append(ctx context.Context, b events.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	lost := ""
	if b.Lost {
		lost = "1"
	}
	keys := []string{key, key + ":" + b.Writer}
	if err := appendScript.Run(ctx, l.rdb, keys, b.Number, remember.Milliseconds(), Size, lost, strings.Join(b.Texts, "\n")).Err(); err != nil {
		return fmt.Errorf("redislog: append %d events: %w", len(b.Texts), err)
	}
	return nil
}

// Latest implements [events.Log]. It reads page by page, as the whole stream may be too much for one call.
func (l *Log) Latest(ctx context.Context, n int) (latest []events.Entry, err error) {
	if err := l.begin(ctx); err != nil {
		return nil, fmt.Errorf("redislog: begin the stream: %w", err)
	}
	for end, have := "+", 0; have < n; {
		read, err := l.page(ctx, end)
		if err != nil {
			return nil, fmt.Errorf("redislog: read the latest events: %w", err)
		}
		for _, m := range read {
			if have >= n {
				break
			}
			e := entry(m)
			latest, have, end = append(latest, e), have+len(e.Texts), "("+m.ID
		}
		if len(read) < pageSize {
			break
		}
	}
	if len(latest) == 0 {
		return nil, events.ErrGap // it was deleted meanwhile
	}
	slices.Reverse(latest)
	return latest, nil
}

func (l *Log) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return beginScript.Run(ctx, l.rdb, []string{key}).Err()
}

func (l *Log) page(ctx context.Context, end string) ([]redis.XMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return l.rdb.XRevRangeN(ctx, key, end, "-", pageSize).Result()
}

// Next implements [events.Log].
func (l *Log) Next(ctx context.Context, id events.ID, n int) ([]events.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, block+callTime)
	defer cancel()
	streams, err := l.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{key, id.String()}, Count: int64(n), Block: block}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, l.continues(ctx, id)
	case err != nil:
		return nil, fmt.Errorf("redislog: read events: %w", err)
	}
	var entries []events.Entry
	for _, s := range streams {
		for _, m := range s.Messages {
			entries = append(entries, entry(m))
		}
	}
	return entries, nil
}

// continues fails with [events.ErrGap] if the last entry of the stream is not at or after id.
func (l *Log) continues(ctx context.Context, id events.ID) error {
	last, err := l.rdb.XRevRangeN(ctx, key, "+", "-", 1).Result()
	if err != nil {
		return fmt.Errorf("redislog: read the last event: %w", err)
	}
	if len(last) == 0 {
		return events.ErrGap
	}
	if at, _ := events.ParseID(last[0].ID); at.Compare(id) < 0 {
		return events.ErrGap
	}
	return nil
}

// entry reads an entry. An entry that another program has written names no previous entry, and counts as a gap.
func entry(m redis.XMessage) (e events.Entry) {
	e.ID, _ = events.ParseID(m.ID)
	previous, _ := m.Values["p"].(string)
	e.Previous, _ = events.ParseID(previous)
	e.Lost = m.Values["l"] == "1"
	if texts, _ := m.Values["e"].(string); texts != "" {
		e.Texts = strings.Split(texts, "\n")
	}
	return e
}
