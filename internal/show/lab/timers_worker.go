package lab

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/sqlstore"
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
	keep(ctx context.Context, orders []order.Order)
	// count returns how many timers there are.
	count(ctx context.Context) int
	// consume calls fire with those that are due, until ctx ends.
	consume(ctx context.Context, fire func(ctx context.Context, ids []string) error)
}

// timersWorker places the orders of its task, and claims their timers. It fires none, so that it can be killed with
// them. With no orders in its task it fires the timers that it finds.
func timersWorker(ctx context.Context, w *Worker) {
	store := w.store(ctx)
	defer store.Close()
	timers, store := w.timerPlace(store)
	n := must(strconv.Atoi(w.Task["orders"]))
	w.Stops(pointReady, "")
	if n > 0 {
		w.dieWithTimers(ctx, store, timers, n)
		return
	}
	w.Says(pointFound, "%d", timers.count(ctx))
	timers.consume(ctx, func(ctx context.Context, ids []string) error {
		_, err := store.Expire(ctx, ids)
		return err
	})
}

func (w *Worker) dieWithTimers(ctx context.Context, store *sqlstore.Store, timers timerPlace, n int) {
	timers.keep(ctx, place(ctx, store, w.Task["sku"], n, timersTTL))
	w.Says(pointPlaced, "")
	var mu sync.Mutex
	claimed := 0
	timers.consume(ctx, func(ctx context.Context, ids []string) error {
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
func (w *Worker) timerPlace(store *sqlstore.Store) (timerPlace, *sqlstore.Store) {
	if w.Task["kind"] == inMemory {
		return &memoryTimers{}, store
	}
	rdb := must(redisclient.New(w.Task["redis"]))
	if w.Task["kind"] == inSet {
		return setTimers{textbook.Queue{Redis: rdb, Key: "due:" + w.Task["sku"]}}, store
	}
	return newRowTimers(rdb, store, w.Task["name"])
}

// memoryTimers are in this process alone.
type memoryTimers struct{ orders []order.Order }

func (m *memoryTimers) keep(_ context.Context, orders []order.Order) {
	m.orders = append(m.orders, orders...)
}

func (m *memoryTimers) count(context.Context) int { return len(m.orders) }

func (m *memoryTimers) consume(ctx context.Context, fire func(context.Context, []string) error) {
	for _, o := range m.orders {
		if !backoff.Sleep(ctx, time.Until(o.ExpiresAt)) {
			return
		}
		check(fire(ctx, []string{o.ID}))
	}
	<-ctx.Done()
}

// setTimers are in a Redis sorted set.
type setTimers struct{ queue textbook.Queue }

func (s setTimers) keep(ctx context.Context, orders []order.Order) {
	for _, o := range orders {
		check(s.queue.Schedule(ctx, o.ID, o.ExpiresAt))
	}
}

func (s setTimers) count(ctx context.Context) int {
	return int(must(s.queue.Redis.ZCard(ctx, s.queue.Key).Result()))
}

func (s setTimers) consume(ctx context.Context, fire func(context.Context, []string) error) {
	for ok := true; ok; ok = backoff.Sleep(ctx, 10*time.Millisecond) {
		ids, err := s.queue.Poll(ctx, 1000)
		if len(ids) > 0 {
			err = cmp.Or(err, fire(ctx, ids))
		}
		check(err)
	}
}

// rowTimers are rows of the database, and Redis has an index of them.
type rowTimers struct {
	rows  *sqltimers.Store
	queue *timeout.Queue
}

// newRowTimers returns the queue of the shop, and the store whose transactions schedule in it.
func newRowTimers(rdb redis.UniversalClient, store *sqlstore.Store, name string) (timerPlace, *sqlstore.Store) {
	rows := must(store.Timers())
	index := must(redisindex.New(rdb, redisindex.Config{}))
	queue := must(timeout.New(rows, index, timeout.Config{Instance: name}))
	return rowTimers{rows, queue}, store.WithTimers(queue)
}

// keep has nothing to do: the transaction that placed the orders stored the rows.
func (rowTimers) keep(context.Context, []order.Order) {}

func (t rowTimers) count(ctx context.Context) (n int) {
	for _, states := range must(t.rows.Count(ctx)) {
		n += states[timeout.Open]
	}
	return n
}

func (t rowTimers) consume(ctx context.Context, fire func(context.Context, []string) error) {
	handler := func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		ids, outcomes := make([]string, len(batch)), make([]timeout.Outcome, len(batch))
		for i, f := range batch {
			ids[i], outcomes[i] = f.ID, timeout.Committed() // the transaction that expires an order deletes its timer
		}
		return outcomes, fire(ctx, ids)
	}
	check(t.queue.Handle(order.ExpireTimer, handler, timeout.Options{Batch: 200}))
	check(t.queue.Run(ctx))
}
