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
	var errs []error
	if retries > 0 {
		errs = append(errs, errors.New("the client repeats commands by itself: set MaxRetries to -1"))
	}
	if !deadlines {
		errs = append(errs, errors.New("the client ignores the deadlines of contexts: set ContextTimeoutEnabled"))
	}
	return errors.Join(errs...)
}
