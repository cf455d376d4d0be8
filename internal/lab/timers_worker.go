package lab

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/order"
	"example.com/shop/internal/redisx"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
	"example.com/shop/internal/timeout/sqltimers"
	"example.com/shop/internal/timeout/textbook"
)

// The places for timers.
const (
	inMemory = "memory"
	inSet    = "zset"
	inRows   = "rows"
)

// The points of a worker with timers, after pointReady.
const (
	pointPlaced  = "placed"  // its orders are stored, with their timers
	pointClaimed = "claimed" // timers are due, and it alone has them; the value is their number
	pointFound   = "found"   // it begins to consume; the value is the number of timers that exist
)

// timerPlace keeps timers of orders.
type timerPlace interface {
	// keep stores the timers of orders.
	keep(ctx context.Context, orders []order.Order) error
	// count returns how many timers there are.
	count(ctx context.Context) (int, error)
	// consume calls fire with those that are due, until ctx ends.
	consume(ctx context.Context, fire func(ctx context.Context, ids []string) error) error
}

// timersWorker places the orders of its task, and claims their timers. It fires none, so that it can be killed with
// them. With no orders in its task it fires the timers that it finds.
func timersWorker(ctx context.Context, w *Worker) error {
	store, err := w.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	place, store, err := w.timerPlace(store)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(w.Task["orders"])
	if err != nil {
		return err
	}
	if err := w.Stops(pointReady, ""); err != nil {
		return err
	}
	if n > 0 {
		return w.dieWithTimers(ctx, store, place, n)
	}
	found, err := place.count(ctx)
	if err != nil {
		return err
	}
	w.Says(pointFound, "%d", found)
	return place.consume(ctx, func(ctx context.Context, ids []string) error {
		_, err := store.Expire(ctx, ids)
		return err
	})
}

func (w *Worker) dieWithTimers(ctx context.Context, store *sqlstore.Store, place timerPlace, n int) error {
	batch := &order.Batch{Claims: []stock.Claim{{SKU: w.Task["sku"], Update: stock.Conditional}}}
	for i := range n {
		batch.Requests = append(batch.Requests, oneUnit(fmt.Sprint("customer-", i), w.Task["sku"], timersTTL))
	}
	if err := store.Commit(ctx, batch); err != nil {
		return err
	}
	var orders []order.Order
	for _, r := range batch.Requests {
		if r.Err != nil {
			return r.Err
		}
		orders = append(orders, r.Order)
	}
	if err := place.keep(ctx, orders); err != nil {
		return err
	}
	w.Says(pointPlaced, "")
	var mu sync.Mutex
	claimed := 0
	return place.consume(ctx, func(ctx context.Context, ids []string) error {
		mu.Lock()
		if claimed += len(ids); claimed == n {
			w.Says(pointClaimed, "%d", n)
		}
		mu.Unlock()
		<-ctx.Done() // it is killed here
		return context.Cause(ctx)
	})
}

// timerPlace returns the place of the task, and the store that schedules there.
func (w *Worker) timerPlace(store *sqlstore.Store) (timerPlace, *sqlstore.Store, error) {
	if w.Task["kind"] == inMemory {
		return &memoryTimers{}, store, nil
	}
	rdb, err := redisx.New(w.Task["redis"])
	if err != nil {
		return nil, nil, err
	}
	if w.Task["kind"] == inSet {
		return setTimers{textbook.Queue{Redis: rdb, Key: "due:" + w.Task["sku"]}}, store, nil
	}
	return newRowTimers(rdb, store, w.Task["name"])
}

// memoryTimers are in this process alone.
type memoryTimers struct{ orders []order.Order }

func (m *memoryTimers) keep(_ context.Context, orders []order.Order) error {
	m.orders = append(m.orders, orders...)
	return nil
}

func (m *memoryTimers) count(context.Context) (int, error) { return len(m.orders), nil }

func (m *memoryTimers) consume(ctx context.Context, fire func(context.Context, []string) error) error {
	for _, o := range m.orders {
		select {
		case <-time.After(time.Until(o.ExpiresAt)):
		case <-ctx.Done():
			return nil
		}
		if err := fire(ctx, []string{o.ID}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// setTimers are in a Redis sorted set.
type setTimers struct{ queue textbook.Queue }

func (s setTimers) keep(ctx context.Context, orders []order.Order) error {
	for _, o := range orders {
		if err := s.queue.Schedule(ctx, o.ID, o.ExpiresAt); err != nil {
			return err
		}
	}
	return nil
}

func (s setTimers) count(ctx context.Context) (int, error) {
	n, err := s.queue.Redis.ZCard(ctx, s.queue.Key).Result()
	return int(n), err
}

func (s setTimers) consume(ctx context.Context, fire func(context.Context, []string) error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ids, err := s.queue.Poll(ctx, 1000)
		if len(ids) > 0 {
			err = cmp.Or(err, fire(ctx, ids))
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// rowTimers are rows of the database, and Redis has an index of them.
type rowTimers struct {
	rows  *sqltimers.Store
	queue *timeout.Queue
}

// newRowTimers returns the queue of the product, and the store whose transactions schedule in it.
func newRowTimers(rdb redis.UniversalClient, store *sqlstore.Store, name string) (timerPlace, *sqlstore.Store, error) {
	rows, err := store.Timers()
	if err != nil {
		return nil, nil, err
	}
	index, err := redisindex.New(rdb, redisindex.Config{})
	if err != nil {
		return nil, nil, err
	}
	queue, err := timeout.New(rows, index, timeout.Config{Instance: name})
	return rowTimers{rows, queue}, store.WithTimers(queue), err
}

// keep has nothing to do: the transaction that placed the orders stored the rows.
func (rowTimers) keep(context.Context, []order.Order) error { return nil }

func (t rowTimers) count(ctx context.Context) (n int, err error) {
	shards, err := t.rows.Count(ctx)
	for _, states := range shards {
		n += states[timeout.Open]
	}
	return n, err
}

func (t rowTimers) consume(ctx context.Context, fire func(context.Context, []string) error) error {
	handler := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		ids, outcomes := make([]string, len(batch)), make([]timeout.Outcome, len(batch))
		for i, f := range batch {
			ids[i], outcomes[i] = f.ID, timeout.Committed() // the transaction that expires an order deletes its timer
		}
		return outcomes, fire(ctx, ids)
	}
	if err := t.queue.Handle(order.ExpireTimer, handler, timeout.Options{Batch: 200}); err != nil {
		return err
	}
	return t.queue.Run(ctx)
}
