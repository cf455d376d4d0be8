package redisstock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/redisstock"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// servers runs f on a real Redis, and on the one that the demo embeds.
func servers(t *testing.T, f func(t *testing.T, rdb redis.UniversalClient)) {
	t.Helper()
	for name, url := range map[string]func(t *testing.T) string{
		"redis":     func(t *testing.T) string { t.Helper(); return testbedtest.StartRedis(t, testbed.RedisConfig{}).URL() },
		"miniredis": func(t *testing.T) string { t.Helper(); return "redis://" + miniredis.RunT(t).Addr() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, client(t, url(t)))
		})
	}
}

func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(url + "?read_timeout=1m") // what bounds a call is Config.Timeout
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// counter returns a counter whose time limits outlast a machine that is paused for seconds, unless cfg sets others.
func counter(t *testing.T, rdb redis.UniversalClient, cfg redisstock.Config) *redisstock.Counter {
	t.Helper()
	if cfg.Life == 0 {
		cfg.Life = time.Hour
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	c, err := redisstock.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// level returns a level of the SKU a.
func level(version, available int64) *stock.Level {
	return &stock.Level{SKU: "a", Version: version, OnHand: available + 7, Reserved: 7}
}

// learn has c know a level.
func learn(t *testing.T, c *redisstock.Counter, l *stock.Level) {
	t.Helper()
	c.Finish(stock.Hold{SKU: "a", ID: "none", Seen: -1}, l)
	c.Flush(t.Context(), "a")
}

// take takes units and expects these grants.
func take(t *testing.T, c *redisstock.Counter, wanted []int64, grants ...bool) stock.Hold {
	t.Helper()
	hold, err := c.Take(t.Context(), "a", wanted)
	if err != nil || cmp.Diff(grants, hold.Granted) != "" {
		t.Errorf("of %v granted %v, want %v: %v", wanted, hold.Granted, grants, err)
	}
	return hold
}

// Each order has all its units or none, in the order of arrival. Nobody else gets its units until the hold ends, and
// then the database decides.
func TestTakenUnitsAreTaken(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		one, two := counter(t, rdb, redisstock.Config{}), counter(t, rdb, redisstock.Config{})
		if first, err := one.Take(t.Context(), "a", []int64{1}); err != nil || first.Granted != nil || first.Denies(0) {
			t.Errorf("of what nobody knows: %+v, %v", first, err)
		}
		learn(t, one, level(1, 10))
		mine := take(t, one, []int64{3, 8, 0, 4}, true, false, true, true)
		theirs := take(t, two, []int64{4, 3, 1}, false, true, false)
		one.Finish(mine, nil) // nothing was sold
		again := take(t, one, []int64{8, 7}, false, true)
		two.Finish(theirs, level(2, 7))
		take(t, two, []int64{1}, false)
		one.Finish(again, level(3, 0))
		take(t, one, []int64{1}, false)
		take(t, two, []int64{1}, false)
	})
}

// A hold that is settled twice, or late, counts once.
func TestSettlingTwiceIsSettlingOnce(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		c := counter(t, rdb, redisstock.Config{})
		learn(t, c, level(1, 10))
		mine := take(t, c, []int64{4}, true)
		for range 3 {
			c.Finish(mine, nil)
			c.Flush(t.Context(), "a")
		}
		take(t, c, []int64{11, 10}, false, true)
	})
}

// Units whose taker sends no more requests are free after Config.Life.
func TestHoldsOfDeadInstancesEnd(t *testing.T) {
	t.Parallel()
	rdb := client(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
	dead, alive := counter(t, rdb, redisstock.Config{Life: time.Second}), counter(t, rdb, redisstock.Config{Life: time.Hour})
	learn(t, alive, level(1, 10))
	taken := time.Now()
	take(t, dead, []int64{6}, true)
	stays := take(t, alive, []int64{3}, true)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		asked := time.Now()
		got, err := alive.Take(t.Context(), "a", []int64{2, 6})
		alive.Finish(got, nil)
		if err != nil || asked.After(end) {
			t.Fatalf("%+v, %v", got, err)
		}
		if got.Granted[0] {
			if early := time.Second - time.Since(taken); early > time.Millisecond { // to which Redis rounds
				t.Errorf("%v early", early)
			}
			break
		}
	}
	alive.Flush(t.Context(), "a")
	take(t, alive, []int64{8, 7}, false, true)
	alive.Finish(stays, nil)
}

// A clock of Redis that has gone back does not keep units for ever.
func TestATakingOfTheFutureIsOver(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		c := counter(t, rdb, redisstock.Config{Life: time.Minute})
		learn(t, c, level(1, 10))
		for name, hold := range map[string]string{"tomorrow": fmt.Sprintf("9:%d", time.Now().Add(24*time.Hour).UnixMilli()), "rubbish": "x", "none": ""} {
			if err := rdb.HSet(t.Context(), "shop:units:{a}:taken", name, hold).Err(); err != nil {
				t.Fatal(err)
			}
		}
		take(t, c, []int64{10}, true)
		if n := rdb.HLen(t.Context(), "shop:units:{a}:taken").Val(); n != 1 {
			t.Errorf("%d takings", n)
		}
	})
}

// A reader of a level that is slow does not undo a newer one.
func TestOlderLevelsAreIgnored(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		c := counter(t, rdb, redisstock.Config{})
		slow, err := c.Take(t.Context(), "a", []int64{1})
		if err != nil {
			t.Fatal(err)
		}
		learn(t, c, level(5, 2))
		c.Finish(slow, level(4, 10))
		take(t, c, []int64{3, 2}, false, true)
	})
}

// A version that is higher than the row's was later is of another database, or of one that was
// restored: the row is right.
func TestAnotherHistoryIsForgotten(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		c := counter(t, rdb, redisstock.Config{})
		learn(t, c, level(1000, 0))
		mine := take(t, c, []int64{1}, false)
		theirs := take(t, c, []int64{1}, false)
		c.Finish(mine, level(6, 9))
		c.Finish(theirs, level(5, 10)) // read earlier, received later
		take(t, c, []int64{10, 9}, false, true)
	})
}

// If the reply to a take is lost, the next hold releases the taken units.
func TestALostReplyTakesNothing(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	proxy := testbedtest.StartProxy(t, server.Addr())
	c := counter(t, client(t, "redis://"+proxy.Addr()), redisstock.Config{Life: time.Hour})
	learn(t, c, level(1, 10))
	proxy.DropReply("EVALSHA")
	if hold, err := c.Take(t.Context(), "a", []int64{10}); err == nil {
		t.Errorf("%+v", hold)
	}
	if n := proxy.Dropped(); n != 1 {
		t.Fatalf("%d replies were dropped", n)
	}
	take(t, c, []int64{10}, true)
}

// Redis that does not answer costs a caller Config.Timeout, and what is owed to it is bounded.
func TestASilentRedis(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	c := counter(t, client(t, server.URL()), redisstock.Config{Timeout: 50 * time.Millisecond})
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := c.Take(t.Context(), "a", []int64{1}); err == nil || time.Since(began) < 50*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	for range 10_000 {
		c.Finish(stock.Hold{SKU: "a", ID: "x"}, nil)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	own := counter(t, client(t, server.URL()), redisstock.Config{})
	learn(t, own, level(1, 10))
	c.Flush(t.Context(), "a")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := own.Take(ended, "a", []int64{1}); err == nil {
		t.Error("taken with a context that has ended")
	}
	take(t, own, []int64{10}, true)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	repeats := redis.NewClient(&redis.Options{})
	defer repeats.Close()
	if _, err := redisstock.New(repeats, redisstock.Config{}); err == nil {
		t.Error("a client that repeats commands")
	}
	rdb := client(t, "redis://127.0.0.1:1")
	for _, cfg := range []redisstock.Config{{Life: -1}, {Life: time.Microsecond}, {Timeout: -1}} {
		if _, err := redisstock.New(rdb, cfg); err == nil {
			t.Errorf("%+v", cfg)
		}
	}
}
