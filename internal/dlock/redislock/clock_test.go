package redislock_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The clock of Redis is set back by a day, after a holder and a waiter have died. The key is free after a TTL. A holder
// that lives keeps its whole TTL, which is longer than that of who asks.
func TestClockOfRedisIsSetBack(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{OwnClock: true})
	rdb, key, other := redistest.Client(t, server.URL()), rand.Text(), rand.Text()
	run(t, rdb, "acquire", key, "holder-1-5000", 5000, "")
	run(t, rdb, "acquire", key, "waiter-1-5000", 5000, "77")
	const long = time.Minute
	redistest.MustTake(t, configured(t, rdb, redislock.Config{TTL: long}).TryAcquire, other)
	if err := server.SetClock(-24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if left := rdb.PTTL(t.Context(), lockKey(key)).Val(); left < 23*time.Hour {
		t.Fatalf("the key lasts for %v: the clock was not set back", left)
	}
	l := locker(t, rdb)
	redistest.MustTake(t, l.Acquire, key)
	err := dlock.ErrUncertain
	for end := time.Now().Add(time.Minute); errors.Is(err, dlock.ErrUncertain) && time.Now().Before(end); { // the machine is busy
		_, err = l.TryAcquire(t.Context(), other)
	}
	if !errors.Is(err, dlock.ErrHeld) {
		t.Errorf("TryAcquire = %v, want ErrHeld", err)
	}
	if left := rdb.PTTL(t.Context(), lockKey(other)).Val(); left > long || left < long*9/10 {
		t.Errorf("the key of a holder with a TTL of %v lasts for %v", long, left)
	}
}
