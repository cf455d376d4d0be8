package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		open := func(addr string) redis.UniversalClient { return client(t, "redis://"+addr) }
		careless := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:4", MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer careless.Close()
		cluster, err := redisclient.New("redis+cluster://127.0.0.1:5")
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		a, b, c := open("127.0.0.1:1"), open("127.0.0.1:2"), open("127.0.0.1:3")
		for name, all := range map[string][]redis.UniversalClient{
			"two servers":     {a, b},
			"one named twice": {a, b, open("127.0.0.1:1")},
			"default options": {a, b, careless},
			"a cluster":       {a, b, cluster},
		} {
			if _, err := redlock.New(all, redlock.Config{}); err == nil {
				t.Errorf("%s: New accepts it", name)
			}
		}
		for name, cfg := range map[string]redlock.Config{"TTL": {TTL: time.Microsecond}, "prefix": {Prefix: "a{b}"}} {
			if _, err := redlock.New([]redis.UniversalClient{a, b, c}, cfg); err == nil {
				t.Errorf("%s: New accepts it", name)
			}
		}
		if _, err := redlock.New([]redis.UniversalClient{a, b, c}, redlock.Config{}); err != nil {
			t.Error(err)
		}
	})
}
