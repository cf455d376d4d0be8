package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/platform/testbed"
)

// redlockServers is how many servers of their own the votes of redlock come from.
const redlockServers = 5

// serversTimeout is how long servers may take to start.
const serversTimeout = 2 * time.Minute

// startup is servers for stores that start, all at the same time.
type startup struct {
	stores *Stores // its closers and Missing are guarded by mu
	group  sync.WaitGroup

	mu   sync.Mutex
	errs []error // guarded by mu
}

// launch starts a server in place of a store that is not named already, and names it. The kind is what would have to be
// installed.
func launch[S io.Closer, C any](
	ctx context.Context, u *startup, kind string, name *string,
	open func(context.Context, C) (S, error), address func(S) string,
) {
	if *name != "" {
		return
	}
	u.group.Go(func() {
		var defaults C
		server, err := open(ctx, defaults)
		u.mu.Lock()
		defer u.mu.Unlock()
		switch {
		case errors.Is(err, testbed.ErrNotInstalled):
			u.stores.Missing = append(u.stores.Missing, kind)
		case err != nil:
			u.errs = append(u.errs, fmt.Errorf("start %s: %w", kind, err))
		default:
			*name = address(server)
			u.stores.closers = append(u.stores.closers, server.Close)
		}
	})
}

// startServers starts real servers, all at the same time, in place of those stores that
// are not named, and notes what is not installed. They end with s, and with this process.
func (s *Stores) startServers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	servers, redises := startup{stores: s}, make([]string, redlockServers)
	launch(ctx, &servers, "MariaDB", &s.Database, testbed.StartMariaDB, (*testbed.MariaDB).URL)
	launch(ctx, &servers, "Redis", &s.Redis, testbed.StartRedis, (*testbed.Redis).URL)
	for i := range redises {
		if s.Redlock == "" {
			launch(ctx, &servers, "Redis", &redises[i], testbed.StartRedis, (*testbed.Redis).URL)
		}
	}
	launch(ctx, &servers, "ZooKeeper", &s.ZooKeeper, testbed.StartZooKeeper, (*testbed.ZooKeeper).Addr)
	launch(ctx, &servers, "etcd", &s.Etcd, testbed.StartEtcd, (*testbed.Etcd).Addr)
	servers.group.Wait()
	if s.Redlock == "" && !slices.Contains(redises, "") {
		s.Redlock = strings.Join(redises, ",")
	}
	slices.Sort(s.Missing)
	s.Missing = slices.Compact(s.Missing)
	return errors.Join(servers.errs...)
}
