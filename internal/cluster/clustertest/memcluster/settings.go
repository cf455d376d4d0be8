package memcluster

import (
	"context"
	"iter"
	"maps"

	"example.com/shop/internal/cluster"
)

// Entries implements [cluster.ConfigStore].
func (c *Cluster) Entries(ctx context.Context, names ...string) iter.Seq2[map[string]cluster.Entry, error] {
	return watch(ctx, c, maps.Equal, func() map[string]cluster.Entry {
		entries := make(map[string]cluster.Entry, len(names))
		for _, name := range names {
			if e, ok := c.entries[name]; ok {
				entries[name] = e
			}
		}
		return entries
	})
}

// Write implements [cluster.ConfigStore].
func (c *Cluster) Write(_ context.Context, name, text string, version int64) (written int64, err error) {
	c.change(func() {
		now := c.entries[name]
		if now.Version != version {
			err = &cluster.ConflictError{Name: name, Expected: version, Current: now}
			return
		}
		if c.entries == nil {
			c.entries = map[string]cluster.Entry{}
		}
		written = version + 1
		c.entries[name] = cluster.Entry{Text: text, Version: written}
	})
	return written, err
}
