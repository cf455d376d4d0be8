package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/dlock/otellock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/storeurl"
	"example.com/shop/internal/platform/zookeeper"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/redisstock"
	"example.com/shop/internal/telemetry"
)

const (
	// leaseTTL is how long a SKU is blocked by an instance that died while it held the lease. A lease is held for
	// milliseconds, so it is seldom renewed. An instance that is paused for longer loses its leases, and retries the
	// attempts that had them.
	leaseTTL = 2 * time.Second

	// sessionTimeout is how long ZooKeeper keeps an instance in the list of members after it died.
	// The locks of SKUs have a session of their own that lasts for leaseTTL. So an instance that is slow for a moment
	// loses leases, which it acquires again, and keeps its place in the cluster.
	sessionTimeout = 8 * time.Second
)

// locks is what an instance has of Redis; without --redis it has nothing.
type locks struct {
	rdb    redis.UniversalClient
	locker dlock.Locker // the same, measured
}

// openRedis opens the lock service, once it answers. It refuses a Redis that is not usable.
func openRedis(ctx context.Context, c Config, rdb redis.UniversalClient, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (locks, error) {
	if rdb == nil {
		return locks{}, nil
	}
	l := locks{rdb: rdb}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := usable(ctx, rdb, log); err != nil {
		return locks{}, fmt.Errorf("open redis %s: %w", redacted(c.Redis), err)
	}
	locker, err := redislock.New(rdb, redislock.Config{TTL: leaseTTL})
	if err != nil {
		return locks{}, err
	}
	closers.pushService("redis", locker.Close)
	l.locker, err = measured(locker, "redis", tel)
	return l, err
}

// silent keeps go-redis from printing what its errors say as well.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// openLockers prepares the other lock services that c names, and the one that the database
// is. None of them is checked.
func openLockers(ctx context.Context, c Config, store *sqlstore.Store, l locks, units redis.UniversalClient, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (all stock.Lockers, err error) {
	all.Redis = l.locker
	if units != nil {
		if all.Units, err = redisstock.New(units, redisstock.Config{}); err != nil {
			return all, err
		}
	}
	sql, err := store.Locks(ctx, sqllock.Config{TTL: leaseTTL, MaxTTL: leaseTTL})
	if err != nil {
		return all, err
	}
	closers.pushService("sql", sql.Close)
	if all.SQL, err = measured(sql, "sql", tel); err != nil {
		return all, err
	}
	if c.Redlock != "" {
		locker, err := openRedlock(ctx, c.Redlock, tel, closers, log)
		if err != nil {
			return all, fmt.Errorf("open redlock %s: %w", allRedacted(c.Redlock), err)
		}
		if all.Redlock, err = measured(locker, "redlock", tel); err != nil {
			return all, err
		}
	}
	session, err := openZooKeeper(ctx, c, leaseTTL, closers)
	if err != nil {
		return all, err
	}
	if session != nil {
		locker, err := zklock.New(session, zklock.Config{})
		if err != nil {
			return all, err
		}
		if all.ZooKeeper, err = measured(locker, "zookeeper", tel); err != nil {
			return all, err
		}
	}
	if c.Etcd != "" {
		locker, err := openEtcd(ctx, c.Etcd, closers)
		if err != nil {
			return all, fmt.Errorf("open etcd: %w", err)
		}
		if all.Etcd, err = measured(locker, "etcd", tel); err != nil {
			return all, err
		}
	}
	return all, nil
}

func openRedlock(ctx context.Context, urls string, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (dlock.Locker, error) {
	var servers []redis.UniversalClient
	var asked errgroup.Group // no longer than a second about eviction, as servers may be away
	for u := range strings.SplitSeq(urls, ",") {
		rdb, err := redisclient.New(u)
		if err != nil {
			return nil, fmt.Errorf("--redlock: %w", err)
		}
		closers.pushClient("redis client", rdb.Close)
		if err := telemetry.InstrumentRedis(rdb, fmt.Sprint("redlock ", len(servers)+1), tel); err != nil {
			return nil, err
		}
		servers = append(servers, rdb)
		asked.Go(func() error {
			if err := requireNoEviction(ctx, rdb, log.With(slog.String("server", redacted(u)))); err != nil {
				return fmt.Errorf("%s: %w", redacted(u), err)
			}
			return nil
		})
	}
	if err := asked.Wait(); err != nil {
		return nil, err
	}
	locker, err := redlock.New(servers, redlock.Config{TTL: leaseTTL})
	if err != nil {
		return nil, err
	}
	closers.pushService("redlock", locker.Close)
	return locker, nil
}

// openZooKeeper begins a session that lasts for timeout, or returns nil without --zookeeper.
func openZooKeeper(ctx context.Context, c Config, timeout time.Duration, closers *closers) (*zookeeper.Session, error) {
	if c.ZooKeeper == "" {
		return nil, nil //nolint:nilnil // None is a choice of the user and no error.
	}
	cfg, err := zookeeper.Address(c.ZooKeeper)
	if err != nil {
		return nil, fmt.Errorf("--zookeeper: %w", err)
	}
	cfg.Timeout, cfg.Auth = timeout, c.ZooKeeperAuth
	if err := shake(ctx, c.ZooKeeper); err != nil {
		return nil, fmt.Errorf("open zookeeper %w", err)
	}
	session, err := zookeeper.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	closers.pushService("zookeeper", session.Close)
	return session, nil
}

func openEtcd(ctx context.Context, address string, closers *closers) (dlock.Locker, error) {
	if err := shake(ctx, address); err != nil {
		return nil, err
	}
	client, err := etcdlock.NewClient(address)
	if err != nil {
		return nil, err
	}
	closers.pushClient("etcd client", client.Close)
	locker, err := etcdlock.New(client, etcdlock.Config{TTL: leaseTTL})
	if err != nil {
		return nil, err
	}
	closers.pushService("etcd", locker.Close)
	return locker, nil
}

// shake returns why no attempt to use TLS with a lock service can succeed. A service that is unavailable is no reason.
func shake(ctx context.Context, address string) error {
	u, err := storeurl.Parse(address, "")
	if err != nil {
		return err
	}
	return u.Shake(ctx)
}

// allRedacted returns a list of URLs without their passwords.
func allRedacted(urls string) string {
	var list []string
	for u := range strings.SplitSeq(urls, ",") {
		list = append(list, redacted(u))
	}
	return strings.Join(list, ",")
}

// measured returns l with spans and metrics.
func measured(l dlock.Locker, backend string, tel *telemetry.Telemetry) (dlock.Locker, error) {
	return otellock.New(l, otellock.Config{Backend: backend, TracerProvider: tel.TracerProvider, MeterProvider: tel.MeterProvider})
}
