package permits_test

import (
	"crypto/rand"
	"testing"
	"time"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The clock of Redis is set back by a day after an instance with all permits has died, or after a loss of data. Others
// wait for no longer than without that.
func TestClockOfRedisIsSetBack(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{OwnClock: true})
	rdb := redistest.Client(t, server.URL())
	const limit = 3
	renewal := permits.Renewal{Wanted: limit, Permits: limit, TTL: time.Second, Hold: time.Second}
	renew := func(s permits.Store, instance string) int {
		renewal.Instance, renewal.Call = instance, renewal.Call+1
		d, err := s.Renew(t.Context(), renewal)
		if err != nil {
			t.Fatal(err)
		}
		return d.Granted
	}
	held, lossy := shared(t, rdb, rand.Text()), shared(t, rdb, rand.Text())
	waitFor(t, "all permits for the one that dies", func() bool { return renew(held, "dead") == limit })
	renew(lossy, "new") // there is no lease: nobody grows yet
	if err := server.SetClock(-24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := renew(held, "heir"); n != 0 {
		t.Errorf("right after the death of the holder of all: %d permits", n)
	}
	waitFor(t, "the permits of the dead", func() bool { return renew(held, "heir") == limit })
	waitFor(t, "permits after the loss", func() bool { return renew(lossy, "new") == limit })
}

// An instance with a shorter TTL, or a shorter wait after a loss of data, shortens those of no other.
func TestShorterTimesOfOneInstanceCutNoOthers(t *testing.T) {
	t.Parallel()
	rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
	store := shared(t, rdb, key)
	fields := func() map[string]string { return rdb.HGetAll(t.Context(), "shop:permits:{"+key+"}").Val() }
	renew := func(instance string, d time.Duration) {
		t.Helper()
		if _, err := store.Renew(t.Context(), permits.Renewal{Instance: instance, Wanted: 1, Permits: 3, TTL: d, Hold: d, Call: 1}); err != nil {
			t.Fatal(err)
		}
	}
	renew("long", time.Hour)
	before := fields()
	renew("short", time.Second)
	after := fields()
	for _, name := range []string{"long", ":hold"} {
		if before[name] == "" || after[name] != before[name] {
			t.Errorf("%s: %q was %q", name, after[name], before[name])
		}
	}
}
