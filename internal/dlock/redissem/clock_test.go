package redissem_test

import (
	"crypto/rand"
	"testing"
	"time"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The clock of Redis is set back by a day. Nothing that was taken before lasts longer than it would have: permits,
// a waiter that has died, and the wait after a loss of data.
func TestClockOfRedisIsSetBack(t *testing.T) {
	t.Parallel()
	const ttl = 30_000 // ms, that of semScript
	server := testbedtest.StartRedis(t, testbed.RedisConfig{OwnClock: true})
	rdb, key, lossy := redistest.Client(t, server.URL()), rand.Text(), rand.Text()
	want := func(n int, owner, answer string) {
		t.Helper()
		if got, _ := semAcquire(t, rdb, key, owner, n); got != answer {
			t.Errorf("%s is %s, want %s", owner, got, answer)
		}
	}
	want(2, "holder-1-30000", "granted")
	want(1, "waiter-1-30000", "queued")
	if err := semScript(t, rdb, "acquire", lossy, "known-1-30000", 1, 1, "1", 7).Err(); err != nil { // it remembers another epoch
		t.Fatal(err)
	}
	if err := server.SetClock(-24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	now := rdb.Time(t.Context()).Val().UnixMilli()
	most := func(what string, until int64) {
		t.Helper()
		if left := until - now; left < ttl*9/10 || left > ttl*2 { // now is before the calls
			t.Errorf("%s: for %d ms, want about %d", what, left, ttl)
		}
	}
	want(1, "waiter-2-30000", "queued")
	for _, permit := range rdb.ZRangeWithScores(t.Context(), redistest.SemaphoreKey(key), 0, -1).Val() {
		most(permit.Member.(string), int64(permit.Score))
	}
	if first := rdb.ZRange(t.Context(), redistest.SemaphoreKey(key)+":queue", 0, 0).Val(); len(first) != 1 || first[0] != "waiter-2-30000" {
		t.Errorf("the first waiter is %q", first)
	}
	if answer, _ := semAcquire(t, rdb, lossy, "new-1-30000", 1); answer != "queued" {
		t.Errorf("after a loss: %s", answer)
	}
	hold, err := rdb.HGet(t.Context(), redistest.SemaphoreKey(lossy)+":state", "hold").Int64()
	if err != nil {
		t.Fatal(err)
	}
	most("the wait after a loss of data", hold)
}
