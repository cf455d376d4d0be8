package cluster

import (
	"context"
	"iter"
	"maps"
	"time"
)

// Fixed is configuration that does not change: that of an instance without a store,
// by the names of the settings. Every entry has version 1. Write returns [ErrReadOnly].
type Fixed map[string]string

var _ ConfigStore = Fixed(nil)

// Entries implements [ConfigStore].
func (f Fixed) Entries(ctx context.Context, names ...string) iter.Seq2[map[string]Entry, error] {
	entries := make(map[string]Entry, len(names))
	for _, name := range names {
		if text, ok := f[name]; ok {
			entries[name] = Entry{text, 1}
		}
	}
	read := func(context.Context, func()) (map[string]Entry, func(), error) { return entries, nil, nil }
	feed := Feed[map[string]Entry]{Read: read, FallbackPoll: time.Hour}
	feed.Equal = maps.Equal
	return feed.Values(ctx)
}

// Write implements [ConfigStore].
func (f Fixed) Write(context.Context, string, string, int64) (int64, error) { return 0, ErrReadOnly }
