package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/redisstock"
)

// ownRedis returns a client of a Redis of this test's own.
func ownRedis(t testing.TB) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(testbedtest.StartRedis(t, testbed.RedisConfig{}).URL() + "?read_timeout=1m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// counterOn returns a counter of units in rdb.
func counterOn(t testing.TB, rdb redis.UniversalClient) stock.Counter {
	t.Helper()
	c, err := redisstock.New(rdb, redisstock.Config{Timeout: time.Minute}) // a machine may stand still for seconds
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// counter returns a counter of units in a Redis of its own.
func counter(t testing.TB) stock.Counter {
	t.Helper()
	return counterOn(t, ownRedis(t))
}

// lies is what can become of the two keys of a SKU in Redis.
var lies = map[string]func(ctx context.Context, rdb redis.UniversalClient, level, taken string) error{
	"wiped": func(ctx context.Context, rdb redis.UniversalClient, _, _ string) error {
		return rdb.FlushAll(ctx).Err()
	},
	"level is gone": func(ctx context.Context, rdb redis.UniversalClient, level, _ string) error {
		return rdb.Del(ctx, level).Err()
	},
	"older, and more": func(ctx context.Context, rdb redis.UniversalClient, level, _ string) error {
		return rdb.HSet(ctx, level, "version", 1, "available", 1000).Err()
	},
	"older, and fewer": func(ctx context.Context, rdb redis.UniversalClient, level, _ string) error {
		return rdb.HSet(ctx, level, "version", 1, "available", 0).Err()
	},
	"of another database, and more": func(ctx context.Context, rdb redis.UniversalClient, level, _ string) error {
		return rdb.HSet(ctx, level, "version", 1<<40, "available", 1000).Err()
	},
	"of another database, and fewer": func(ctx context.Context, rdb redis.UniversalClient, level, _ string) error {
		return rdb.HSet(ctx, level, "version", 1<<40, "available", -5).Err()
	},
	"taken by the dead": func(ctx context.Context, rdb redis.UniversalClient, _, taken string) error {
		return rdb.HSet(ctx, taken, fmt.Sprint("dead", rand.N(1000)), fmt.Sprintf("%d:%d", units, time.Now().Add(4*time.Second).UnixMilli())).Err()
	},
	"takings are gone": func(ctx context.Context, rdb redis.UniversalClient, _, taken string) error {
		return rdb.Del(ctx, taken).Err()
	},
}

// Redis loses or invents levels in the middle of a sale with cancellations. Exactly the stock is sold, and sold out
// means sold out.
func TestLuaIsExactWhateverRedisSays(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		rdb := ownRedis(t)
		ctx, stop := context.WithCancel(t.Context())
		var saboteur sync.WaitGroup
		defer saboteur.Wait()
		defer stop()
		count := 0
		saboteur.Go(func() {
			for ctx.Err() == nil {
				for name, lie := range lies {
					if err := lie(ctx, rdb, "shop:units:{lua}", "shop:units:{lua}:taken"); err != nil && ctx.Err() == nil {
						t.Errorf("%s: %v", name, err)
					}
					count++
					select {
					case <-ctx.Done():
					case <-time.After(rand.N(3 * time.Millisecond)):
					}
				}
			}
		})
		s := sale{
			strategy: "lua", strategies: stock.NewStrategies(stock.Lockers{Units: counterOn(t, rdb)}),
			buyers: 12, attempts: testbedtest.Size(40, 1500), cancel: true,
		}
		a, kept := s.hold(t, url)
		stop()
		saboteur.Wait()
		if !a.OK() || a.Accepted() != units || kept != units {
			t.Errorf("kept %d of %d; %+v %q", kept, units, a, a.Broken())
		}
		t.Logf("%d lies", count)
	})
}

// Each lie by itself is seen through by the next order, and forgotten with the one after it.
func TestLuaCorrectsWhatRedisSays(t *testing.T) {
	t.Parallel()
	s := open(t, testbedtest.Database(t), "one")
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			rdb := ownRedis(t)
			sku := fmt.Sprint("a", rand.N(1_000_000))
			create(t, s, sku, "lua", 4)
			c := counterOn(t, rdb)
			svc := order.NewService(s, stock.NewStrategies(stock.Lockers{Units: c}), order.Config{})
			buy := func(n int64) error {
				_, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: []order.Item{{SKU: sku, Quantity: n}}})
				return errors.Join(err, svc.Wait(t.Context()))
			}
			if err := buy(1); err != nil {
				t.Fatal(err)
			}
			if err := lie(t.Context(), rdb, "shop:units:{"+sku+"}", "shop:units:{"+sku+"}:taken"); err != nil {
				t.Fatal(err)
			}
			if err := buy(4); !isShort(err) {
				t.Errorf("4 of 3: %v", err)
			}
			if err := buy(2); err != nil {
				t.Errorf("2 of 3: %v", err)
			}
			known, err := rdb.HGetAll(t.Context(), "shop:units:{"+sku+"}").Result()
			if err != nil || known["available"] != "1" || known["version"] != fmt.Sprint(levelOf(t, s, sku).Version) {
				t.Errorf("Redis has %v, %v", known, err)
			}
			if err := buy(1); err != nil {
				t.Errorf("the last one: %v", err)
			}
			if err := buy(1); !isShort(err) {
				t.Errorf("one too many: %v", err)
			}
			if a := auditOf(t, s, sku); !a.OK() || a.Open != 4 {
				t.Errorf("%+v %q", a, a.Broken())
			}
		})
	}
}

func levelOf(t *testing.T, s order.Store, sku string) stock.Level {
	t.Helper()
	l, err := s.Level(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Orders with one key in one batch are one order, and none is refused, though there are fewer units than all would take
// together.
func TestLuaEqualOrdersInABatch(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		create(t, s, "a", "lua", 2)
		keys := make([]string, 12)
		for i := range keys {
			keys[i] = "one"
		}
		// Those behind the first are answered as it was.
		if n := granted(t, atOnce(t, s, keys...), isAnswered); n != 1 {
			t.Errorf("%d were accepted, want 1", n)
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 1 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

func isAnswered(err error) bool {
	a, ok := errors.AsType[*idempotency.AnsweredError](err)
	return ok && a.Answer.Status == 0
}
