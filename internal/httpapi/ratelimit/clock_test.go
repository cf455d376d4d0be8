package ratelimit_test

import (
	"crypto/rand"
	"testing"
	"time"

	"example.com/shop/internal/httpapi/ratelimit"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The clock of Redis is set back by a day. A customer who was active may go on, and has no more than a burst.
func TestClockOfRedisIsSetBack(t *testing.T) {
	t.Parallel()
	const burst = 3
	server, key := testbedtest.StartRedis(t, testbed.RedisConfig{OwnClock: true}), rand.Text()
	r := rates(t, server.URL()+unhurried, ratelimit.Config{Rate: burst, Period: time.Hour, Timeout: maxWait})
	takes := func(when string) {
		t.Helper()
		for n := range burst + 1 {
			if v := allow(t, r, key); v.Local || v.Allowed != (n < burst) || v.ResetAfter > time.Hour {
				t.Errorf("%s, operation %d: %+v", when, n+1, v)
			}
		}
	}
	takes("before")
	if err := server.SetClock(-24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	takes("afterwards")
}
