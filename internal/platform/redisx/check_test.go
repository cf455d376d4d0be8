package redisx_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retries   int
		deadlines bool
		ok        bool
	}{
		"as required":       {-1, true, true},
		"defaults":          {0, false, false},
		"repeats":           {3, true, false},
		"ignores deadlines": {-1, false, false},
	} {
		one := redis.NewClient(&redis.Options{MaxRetries: c.retries, ContextTimeoutEnabled: c.deadlines})
		cluster := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"127.0.0.1:1"}, MaxRetries: c.retries, ContextTimeoutEnabled: c.deadlines,
		})
		for _, rdb := range []redis.UniversalClient{one, cluster} {
			if err := redisx.Check(rdb); (err == nil) != c.ok {
				t.Errorf("%s: Check(%T) = %v", name, rdb, err)
			}
			rdb.Close()
		}
	}
}
