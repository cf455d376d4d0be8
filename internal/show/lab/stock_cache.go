package lab

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/redisstock"
)

// The ways of a cache worker to ask the cache.
const (
	cacheGet  = "GET"  // reads what is left
	cacheDecr = "DECR" // takes a unit in one step
	cacheLua  = "lua"  // the strategy lua of the shop
)

// cacheKey is where a SKU's units for sale are cached.
func cacheKey(sku string) string { return "lab:cache:" + sku }

// cacheWorker sells a unit that a cache in Redis counts. It stops between the cache and the database.
func cacheWorker(ctx context.Context, w *Worker) {
	c := sqlstore.Config{URL: w.Task["database"], Instance: w.Task["name"]}
	c.Plugins = append(c.Plugins, sqlstore.StopAround(func() { w.at(pointRead, "1") }, func() {}))
	store := must(sqlstore.Open(ctx, c))
	defer store.Close()
	rdb := must(redisclient.New(w.Task["redis"]))
	w.Stops(pointReady, "")
	sku := w.Task["sku"]
	if w.Task["cache"] == cacheLua {
		strategies := stock.NewStrategies(stock.Lockers{
			Redis: must(redislock.New(rdb, redislock.Config{})), Units: must(redisstock.New(rdb, redisstock.Config{})),
		})
		_, err := order.NewService(store, strategies, order.Config{}).Place(ctx, order.Purchase{Customer: w.Task["name"], Items: []order.Item{{SKU: sku, Quantity: 1}}})
		w.Says(pointDone, "%s", outcome(err))
		return
	}
	if left := take(ctx, rdb, store, sku, w.Task["cache"]); left < 0 {
		w.Says(pointDone, outOfStock)
		return
	}
	w.at(pointRead, "1")
	w.Says(pointDone, "%s", outcome(writeBlindly(ctx, w, sku)))
}

// take asks the cache for a unit, and returns how many are left after it. It fills the cache from the row if it is empty.
func take(ctx context.Context, rdb redis.UniversalClient, store *sqlstore.Store, sku, command string) int64 {
	level := must(store.Level(ctx, sku))
	check(rdb.SetNX(ctx, cacheKey(sku), level.OnHand-level.Reserved, 0).Err())
	if command == cacheDecr {
		return must(rdb.Decr(ctx, cacheKey(sku)).Result())
	}
	return must(rdb.Get(ctx, cacheKey(sku)).Int64()) - 1
}

// writeBlindly stores an order, and takes its unit from the row without a check: the cache has checked.
func writeBlindly(ctx context.Context, w *Worker, sku string) error {
	tx := begin(ctx, w)
	defer tx.Rollback() //nolint:errcheck // it has been committed, or the error that counts is returned
	must(tx.ExecContext(ctx, "UPDATE skus SET reserved = reserved + 1 WHERE sku = ?", sku))
	insertOrder(ctx, tx, w.Task["name"], sku, 0)
	return tx.Commit()
}

func runStockCache(ctx context.Context, r *Run) {
	s := r.open(ctx)
	t := s.theater("the last unit, with a cache in Redis in front of its row", Legend{Holds: "the right outcome", Stale: "data lost, a write too many", Waits: "has a unit, says the cache"})
	read, audit := t.cached(ctx, "check in Redis", cacheGet, false)
	r.Effect(read == [2]string{accepted, accepted} && audit.Oversold() == 1, "check in Redis, then write: both read that 1 unit is left, and it was sold %s", count(int(audit.Accepted()), "time"))
	taken, audit := t.cached(ctx, "DECR in Redis", cacheDecr, true)
	r.Effect(taken == [2]string{accepted, accepted} && audit.Oversold() == 1, "DECR is atomic, and the cache was filled again from a row without the order of A: sold %s", count(int(audit.Accepted()), "time"))
	lua, audit := t.cached(ctx, "lua", cacheLua, true)
	r.Cure(lua == [2]string{accepted, outOfStock} && audit.OK(), "lua: Redis granted the unit twice as well, and the row decided: the order of B was %s", lua[1])
}

// cached has A and B ask the cache for the last unit, and then both write. The cache may lose its data in between.
func (t *theater) cached(ctx context.Context, name, cache string, loses bool) (outcomes [2]string, audit stock.Audit) {
	c := &scene{theater: t, name: name, sku: "cached-" + cache}
	t.stock(ctx, c.sku, map[bool]string{true: "lua", false: "conditional"}[cache == cacheLua], 1)
	var both [2]*Process
	for i := range both {
		name := string(rune('A' + i))
		both[i] = t.r.ready(ctx, c.row(name), t.task("name", name, "sku", c.sku, "cache", cache, "stop", pointRead))
	}
	rdb := t.r.client(t.Redis)
	var asked [2]time.Time
	for i, p := range both {
		asked[i] = p.To(ctx, pointRead).At
		c.at(asked[i])
		c.step("%c asks Redis: a unit is left. It stops before its transaction", 'A'+i)
		if i == 0 && loses {
			c.pace(ctx)
			check(rdb.FlushDB(ctx).Err())
			c.mark("cache", time.Now(), false, "Redis loses its data")
			c.step("Redis loses its data. The next request fills the cache from the row, which has 1 unit: A has not written yet")
		}
		c.pace(ctx)
	}
	for i, p := range both {
		done := p.To(ctx, pointDone)
		outcomes[i] = done.Value
		c.step("%c writes: %s", 'A'+i, done.Value)
		name := string(rune('A' + i))
		c.span(name, asked[i], done.At, Waits, "has a unit")
		c.mark(name, asked[i], true, "Redis: 1 unit left")
		c.mark(name, done.At, i == 0 || done.Value != accepted, "write: %s", done.Value)
		c.pace(ctx)
	}
	return outcomes, c.judge(ctx)
}
