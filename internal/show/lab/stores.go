package lab

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// stores are the stores of one lab, for instances, workers and the lab itself.
type stores struct {
	*fleet.Stores

	records *sqlstore.Store // stock and orders
	r       *Run
}

// open opens a database, and a Redis: a server if it is installed, and otherwise one in this process.
func (r *Run) open(ctx context.Context) *stores { return r.openOn(ctx, "", "a SQLite file") }

// openOn is open with a database that runs already, if there is a URL.
func (r *Run) openOn(ctx context.Context, database, what string) *stores {
	c := fleet.StoresConfig{Embed: true, Database: database}
	kind := "a Redis in this process"
	server, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
	switch {
	case err == nil:
		r.Defer(server.Close)
		c.Redis, kind = server.URL(), "a Redis server"
	case !errors.Is(err, testbed.ErrNotInstalled):
		check(err)
	}
	s := &stores{r: r}
	s.Stores = must(fleet.OpenStores(ctx, c))
	r.Defer(s.Close)
	s.records = must(sqlstore.Open(ctx, sqlstore.Config{URL: s.Database, Instance: "lab"}))
	r.Defer(s.records.Close)
	check(s.records.Migrate(ctx))
	r.Step("stores: %s, and %s", what, kind)
	return s
}

// client returns a client of a Redis.
func (r *Run) client(address string) redis.UniversalClient {
	rdb := must(redisclient.New(address))
	r.Defer(rdb.Close)
	return rdb
}

// instances starts processes that serve. They end with the run.
func (s *stores) instances(ctx context.Context, n int) *fleet.Fleet {
	f := must(fleet.Start(ctx, fleet.Config{Executable: s.r.Executable, Dir: s.Dir, First: 1, N: n, Env: s.Env()}))
	s.r.Defer(f.Close)
	return f
}

// sell puts a new SKU on sale, lets buyers attempt to buy one unit each, and audits it.
func (s *stores) sell(ctx context.Context, f *fleet.Fleet, sku, strategy string, units, attempts, together int) stock.Audit {
	shop := buyers.New(f.URLs(), together)
	defer shop.Close()
	check(shop.Stock(ctx, sku, strategy, units))
	sale := shop.Sell(ctx, sku, attempts, func(buyers.Outcome, int, time.Duration) {})
	if sale.Errors > 0 {
		fail("%d of %d orders of %s got no answer: %s", sale.Errors, attempts, sku, sale.FirstError)
	}
	return s.audit(ctx, sku)
}

// stock puts units of a new SKU on sale.
func (s *stores) stock(ctx context.Context, sku, strategy string, units int) {
	_, _, err := s.records.CreateSKU(ctx, stock.Level{SKU: sku, Strategy: strategy, OnHand: int64(units)})
	check(err)
}

// audit compares columns, ledger and orders of one SKU.
func (s *stores) audit(ctx context.Context, sku string) stock.Audit {
	return must(s.records.Audit(ctx, sku))[0]
}

// fatesOf returns what became of the orders of a SKU, and the time in the database.
func fatesOf(ctx context.Context, store *sqlstore.Store, sku string) (time.Time, []sqlstore.Fate) {
	now, fates, err := store.Fates(ctx, sku)
	check(err)
	return now, fates
}

// store opens the database of the task of a worker as the service does.
func (w *Worker) store(ctx context.Context) *sqlstore.Store {
	return must(sqlstore.Open(ctx, sqlstore.Config{URL: w.Task["database"], Instance: w.Task["name"]}))
}

// task is the task of a worker on these stores, with more of it in pairs.
func (s *stores) task(pairs ...string) map[string]string {
	task := map[string]string{"database": s.Database, "redis": s.Redis}
	for pair := range slices.Chunk(pairs, 2) {
		task[pair[0]] = pair[1]
	}
	return task
}
