package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/buyers"
	"example.com/shop/internal/fleet"
	"example.com/shop/internal/redisx"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed"
)

// stores are the stores of one lab, for instances, workers and the lab itself.
type stores struct {
	*fleet.Stores

	records *sqlstore.Store // stock and orders
	r       *Run
}

// open opens a database, and a Redis: a server if it is installed, and otherwise one in this process.
func (r *Run) open(ctx context.Context) (*stores, error) { return r.openOn(ctx, "", "a SQLite file") }

// openOn is open with a database that runs already, if there is a URL.
func (r *Run) openOn(ctx context.Context, database, what string) (*stores, error) {
	c := fleet.StoresConfig{Embed: true, Database: database}
	kind := "a Redis in this process"
	server, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
	switch {
	case err == nil:
		r.Defer(server.Close)
		c.Redis, kind = server.URL(), "a Redis server"
	case !errors.Is(err, testbed.ErrNotInstalled):
		return nil, err
	}
	s := &stores{r: r}
	if s.Stores, err = fleet.OpenStores(ctx, c); err != nil {
		return nil, err
	}
	r.Defer(s.Close)
	if s.records, err = sqlstore.Open(ctx, sqlstore.Config{URL: s.Database, Instance: "lab"}); err != nil {
		return nil, err
	}
	r.Defer(s.records.Close)
	if err := s.records.Migrate(ctx); err != nil {
		return nil, err
	}
	r.Step("stores: %s, and %s", what, kind)
	return s, nil
}

// client returns a client of a Redis.
func (r *Run) client(address string) (redis.UniversalClient, error) {
	rdb, err := redisx.New(address)
	if err == nil {
		r.Defer(rdb.Close)
	}
	return rdb, err
}

// instances starts processes that serve. They end with the run.
func (s *stores) instances(ctx context.Context, n int, args ...string) (*fleet.Fleet, error) {
	f, err := fleet.Start(ctx, fleet.Config{Executable: s.r.Executable, Dir: s.Dir, First: 1, N: n, Args: args, Env: s.Env()})
	if err != nil {
		return nil, err
	}
	s.r.Defer(f.Close)
	return f, nil
}

// sell puts a new SKU on sale, lets buyers attempt to buy one unit each, and audits it.
func (s *stores) sell(ctx context.Context, f *fleet.Fleet, sku, strategy string, units, attempts, together int) (buyers.Sale, stock.Audit, error) {
	shop := buyers.New(f.URLs(), together)
	defer shop.Close()
	if err := shop.Stock(ctx, sku, strategy, units); err != nil {
		return buyers.Sale{}, stock.Audit{}, err
	}
	sale := shop.Sell(ctx, sku, attempts, ignore)
	audit, err := s.audit(ctx, sku)
	if err == nil && sale.Errors > 0 {
		err = fmt.Errorf("%d of %d orders of %s got no answer: %s", sale.Errors, attempts, sku, sale.FirstError)
	}
	return sale, audit, err
}

// audit compares columns, ledger and orders of one SKU.
func (s *stores) audit(ctx context.Context, sku string) (stock.Audit, error) {
	audits, err := s.records.Audit(ctx, sku)
	if err != nil {
		return stock.Audit{}, err
	}
	return audits[0], nil
}

// open opens the database of the task of a worker as the service does.
func (w *Worker) store(ctx context.Context) (*sqlstore.Store, error) {
	return sqlstore.Open(ctx, sqlstore.Config{URL: w.Task["database"], Instance: w.Task["name"]})
}

// task is the task of a worker on these stores, with more of it in pairs.
func (s *stores) task(pairs ...string) map[string]string {
	task := map[string]string{"database": s.Database, "redis": s.Redis}
	for i := 0; i+1 < len(pairs); i += 2 {
		task[pairs[i]] = pairs[i+1]
	}
	return task
}

// ignore is for who wants no progress.
func ignore(buyers.Outcome, time.Duration) {}
