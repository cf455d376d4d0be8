package zkcluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/zookeeper"
)

// Entries implements [cluster.ConfigStore]. A reading is one request for the names and
// one for each entry.
func (c *Cluster) Entries(ctx context.Context, names ...string) iter.Seq2[map[string]cluster.Entry, error] {
	return watch(ctx, c, maps.Equal, func(ctx context.Context, changed func()) (map[string]cluster.Entry, func(), error) {
		children, stop, err := c.list(ctx, c.configDir(), changed)
		if err != nil {
			return nil, nil, err
		}
		r := &entryReader{c: c, entries: map[string]cluster.Entry{}, stops: []func(){stop}}
		var reading sync.WaitGroup
		for _, name := range names {
			if slices.Contains(children, zookeeper.Escape(name)) {
				reading.Go(func() { r.read(ctx, name, changed) })
			}
		}
		reading.Wait()
		if r.err != nil {
			r.stop()
			return nil, nil, r.err
		}
		return r.entries, r.stop, nil
	})
}

// entryReader reads entries, and watches each.
type entryReader struct {
	c *Cluster

	mu      sync.Mutex
	entries map[string]cluster.Entry
	stops   []func()
	err     error
}

func (r *entryReader) read(ctx context.Context, name string, changed func()) {
	data, stat, stop, err := r.c.s.GetW(ctx, r.c.configPath(name), func(zookeeper.Event) { changed() })
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.entries[name] = cluster.Entry{Text: string(data), Version: version(stat)}
		r.stops = append(r.stops, stop)
	case !errors.Is(err, zk.ErrNoNode): // it has just been deleted, which the list shows
		r.err = err
	}
}

// stop ends all watches.
func (r *entryReader) stop() {
	for _, stop := range r.stops {
		stop()
	}
}

func (c *Cluster) configPath(name string) string { return c.configDir() + "/" + zookeeper.Escape(name) }

// version is that of a node, which counts its writes from 0.
func version(stat *zk.Stat) int64 { return int64(stat.Version) + 1 }

// Write implements [cluster.ConfigStore]. Versions count the writes of a node; one that
// somebody deletes and makes again begins with 1.
func (c *Cluster) Write(ctx context.Context, name, text string, expected int64) (written int64, err error) {
	switch {
	case expected < 0 || expected > math.MaxInt32:
		err = zk.ErrBadVersion // -1 would be any, to ZooKeeper
	case expected == 0:
		err = c.s.Create(ctx, c.configPath(name), []byte(text))
	default:
		_, err = c.s.Set(ctx, c.configPath(name), []byte(text), int32(expected-1))
	}
	switch {
	case err == nil:
		return expected + 1, nil
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNoNode):
		return 0, c.conflict(ctx, name, expected)
	case errors.Is(err, zookeeper.ErrUncertain):
		return 0, fmt.Errorf("%w: %w", cluster.ErrUncertain, err)
	default:
		return 0, err
	}
}

// conflict says what there is instead, if it can be read.
func (c *Cluster) conflict(ctx context.Context, name string, expected int64) error {
	conflict := &cluster.ConflictError{Name: name, Expected: expected}
	if data, stat, err := c.s.Get(ctx, c.configPath(name)); err == nil {
		conflict.Current = cluster.Entry{Text: string(data), Version: version(stat)}
	}
	return conflict
}
