package redisx

import (
	"errors"

	"github.com/redis/go-redis/v9"
)

// Check refuses a client that repeats commands by itself or ignores deadlines. It reads the options of the clients it
// knows; a wrapper answers for itself.
func Check(rdb redis.UniversalClient) error {
	var retries int
	var deadlines bool
	switch c := rdb.(type) {
	case *redis.Client:
		retries, deadlines = c.Options().MaxRetries, c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		retries, deadlines = c.Options().MaxRetries, c.Options().ContextTimeoutEnabled
	default:
		return nil
	}
	if retries > 0 || !deadlines {
		return errors.New("the client repeats commands by itself, or ignores the deadlines of contexts: set MaxRetries to -1, and ContextTimeoutEnabled")
	}
	return nil
}
