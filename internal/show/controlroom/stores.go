package controlroom

import (
	"bufio"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/sqlstore"
)

// measured is what a store did when the room last asked it.
type measured struct {
	Answered bool    `json:"answered"`
	Latency  float64 `json:"latency_ms"`
	Memory   int64   `json:"memory_bytes,omitempty"` // absent if it is not known
}

// storeTimeout is how long a store may take to answer.
const storeTimeout = time.Second

// probe asks the stores as an instance would: through proxies of its own, of which the faults of the line are true as well.
type probe struct {
	member

	rdb   redis.UniversalClient
	books *sqlstore.Store
}

// openProbe connects a probe to the stores. If it fails, close what there is.
func (r *Room) openProbe(ctx context.Context) (err error) {
	if err := r.probe.connect(ctx, r.stores); err != nil {
		return err
	}
	if r.probe.rdb, err = redisclient.New(r.probe.env.Redis); err != nil {
		return err
	}
	r.probe.books, err = sqlstore.Open(ctx, sqlstore.Config{URL: r.probe.env.Database, Instance: "room", Connections: 1, Access: sqlstore.AccessRead})
	return err
}

// measureStores asks the stores every five seconds, until ctx ends.
func (r *Room) measureStores(ctx context.Context) {
	for continues := true; continues; continues = backoff.Sleep(ctx, measureEvery) {
		redisNow := ask(ctx, func(ctx context.Context) error { return r.probe.rdb.Ping(ctx).Err() })
		if redisNow.Answered {
			redisNow.Memory = usedMemory(ctx, r.probe.rdb)
		}
		databaseNow := ask(ctx, r.probe.books.Ping)
		r.mu.Lock()
		r.redisNow, r.databaseNow = redisNow, databaseNow
		r.notify()
		r.mu.Unlock()
	}
}

// ask measures one request.
func ask(ctx context.Context, request func(context.Context) error) measured {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	began := time.Now()
	err := request(ctx)
	return measured{Answered: err == nil, Latency: milliseconds(time.Since(began))}
}

// usedMemory returns the bytes that Redis uses, or 0 if it does not report them.
func usedMemory(ctx context.Context, rdb redis.UniversalClient) int64 {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	info := rdb.Info(ctx, "memory").Val()
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "used_memory:"); ok {
			n, _ := strconv.ParseInt(text, 10, 64)
			return n
		}
	}
	return 0
}
