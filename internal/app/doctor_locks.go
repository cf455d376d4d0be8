package app

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	metrics "go.opentelemetry.io/otel/metric/noop"
	traces "go.opentelemetry.io/otel/trace/noop"

	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/zookeeper"
	"example.com/shop/internal/telemetry"
)

// examineRedis asks what the start of an instance asks, and each master of a cluster for its settings.
func examineRedis(ctx context.Context, c Config, opened *closers) []Check {
	r := &report{"redis", redisHosts(ctx, c.Redis, opened)}
	rdb, err := redisclient.New(c.Redis)
	if err != nil {
		r.need("open", "", err, Fail, "check --redis")
		return r.checks
	}
	opened.pushClient("redis client", rdb.Close)
	r.note("address", redacted(c.Redis))
	err = canWrite(ctx, rdb)
	if err != nil && unreachable(err) {
		err = canWrite(ctx, rdb) // a sentinel that is silent takes up the first attempt, and the client asks another one by then
	}
	if err != nil {
		r.need("write", "", err, Fail, whyNot(err))
	} else {
		locker, err := redislock.New(rdb, redislock.Config{TTL: leaseTTL})
		if err == nil {
			opened.pushService("redis", locker.Close)
		}
		r.lock(ctx, locker, err)
		r.need("notifications", "received", refusedMessages(ctx, rdb), Warn, pollsOnly)
	}
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		r.server(ctx, rdb, Fail)
		return r.checks
	}
	var mu sync.Mutex
	var masters []Check
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		each := &report{store: "redis " + addressOf(node)}
		each.server(ctx, node, Fail)
		mu.Lock()
		defer mu.Unlock()
		masters = append(masters, each.checks...)
		return nil
	})
	r.need("cluster", "all masters asked", err, Fail, "check --redis, and that all masters run")
	slices.SortStableFunc(masters, func(a, b Check) int { return strings.Compare(a.Store, b.Store) })
	return slices.Concat(r.checks, masters)
}

// addressOf returns the HOST:PORT of one server.
func addressOf(rdb redis.UniversalClient) string {
	if one, ok := rdb.(*redis.Client); ok {
		return one.Options().Addr
	}
	return ""
}

// server asks one Redis server. A replica, or a server that does not respond, has the verdict bad.
func (r *report) server(ctx context.Context, rdb redis.UniversalClient, bad Verdict) {
	if err := rdb.Ping(ctx).Err(); err != nil {
		r.need("ping", "", err, bad, whyNot(err))
		return
	}
	text, err := rdb.Info(ctx).Result()
	if err != nil {
		r.need("info", "", err, Warn, "let the user run INFO, or check the settings by hand")
	} else {
		is := fields(text, ":")
		r.note("version", is["redis_version"])
		role := is["redis_mode"] + " " + is["role"]
		r.add("role", role, is["role"] == "master", bad, "name the master, or the sentinels or the cluster that know it")
		r.note("maxmemory", is["maxmemory_human"]+", "+is["used_memory_human"]+" in use")
		r.note("maxclients", is["maxclients"]+", "+is["connected_clients"]+" in use")
	}
	for _, setting := range []string{"appendonly", "save"} { // that managed servers do not tell
		if is, err := rdb.ConfigGet(ctx, setting).Result(); err == nil {
			r.note(setting, strconv.Quote(is[setting]))
		}
	}
	policy, err := evictionPolicy(ctx, rdb)
	if err != nil {
		r.need("maxmemory-policy", "", err, Warn, "make sure that it is noeviction: the server does not tell")
	} else {
		r.add("maxmemory-policy", policy, policy == "noeviction", Fail, "set it to noeviction: a server that evicts locks is refused")
	}
	r.clock(func() (time.Time, error) { return rdb.Time(ctx).Result() })
	r.latency(func() error { return rdb.Ping(ctx).Err() })
}

// fields returns the lines of a text that have a name and a value.
func fields(text, separator string) map[string]string {
	is := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, separator); ok {
			is[name] = strings.TrimSpace(value)
		}
	}
	return is
}

// examineRedlock asks each server, and whether a majority grants a lock.
func examineRedlock(ctx context.Context, c Config, opened *closers) (all []Check) {
	for u := range strings.SplitSeq(c.Redlock, ",") {
		rdb, err := redisclient.New(u)
		if err != nil {
			continue // the lock has the error
		}
		opened.pushClient("redis client", rdb.Close)
		each := &report{store: "redlock " + addressOf(rdb)}
		each.server(ctx, rdb, Warn)
		all = append(all, each.checks...)
	}
	r := &report{store: "redlock"}
	silent := &telemetry.Telemetry{TracerProvider: traces.NewTracerProvider(), MeterProvider: metrics.NewMeterProvider()}
	locker, err := openRedlock(ctx, c.Redlock, silent, opened, slog.New(slog.DiscardHandler))
	r.lock(ctx, locker, err)
	return slices.Concat(all, r.checks)
}

// examineZooKeeper asks each server, and whether the ensemble grants a lock.
func examineZooKeeper(ctx context.Context, c Config, opened *closers) (all []Check) {
	r := &report{store: "zookeeper"}
	cfg, err := zookeeper.Address(c.ZooKeeper)
	if err != nil {
		r.lock(ctx, nil, err)
		return r.checks
	}
	for _, address := range cfg.Servers {
		each := &report{store: "zookeeper " + address}
		text, err := cfg.Status(ctx, address)
		is := fields(text, ": ")
		each.need("version", is["Zookeeper version"], err, Warn, "check that the server runs, and allows srvr in 4lw.commands.whitelist")
		if err == nil {
			each.note("role", is["Mode"])
			each.latency(func() error { _, err := cfg.Status(ctx, address); return err })
		}
		all = append(all, each.checks...)
	}
	session, err := openZooKeeper(ctx, c, leaseTTL, opened)
	if err != nil {
		r.lock(ctx, nil, err)
		return slices.Concat(all, r.checks)
	}
	locker, err := zklock.New(session, zklock.Config{})
	r.lock(ctx, locker, err)
	return slices.Concat(all, r.checks)
}

// examineEtcd asks each member, and whether the cluster grants a lock.
func examineEtcd(ctx context.Context, c Config, opened *closers) (all []Check) {
	r := &report{store: "etcd"}
	client, err := etcdlock.NewClient(c.Etcd)
	if err != nil {
		r.lock(ctx, nil, err)
		return r.checks
	}
	opened.pushClient("etcd client", client.Close)
	for _, address := range client.Endpoints() {
		each := &report{store: "etcd " + address}
		m, err := etcdlock.Ask(ctx, client, address)
		each.need("version", m.Version, err, Warn, "check that the member runs")
		if err == nil {
			each.note("role", m.Role)
			each.add("alarms", cmp.Or(strings.Join(m.Alarms, ", "), "none"), len(m.Alarms) == 0, Warn, "end the alarms: with NOSPACE a cluster refuses writes")
			each.latency(func() error { _, err := etcdlock.Ask(ctx, client, address); return err })
		}
		all = append(all, each.checks...)
	}
	locker, err := openEtcd(ctx, c.Etcd, opened)
	r.lock(ctx, locker, err)
	return slices.Concat(all, r.checks)
}
