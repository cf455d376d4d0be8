package redislock

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// NewClient returns a client for locks on the server that url names
// (redis://USER:PASSWORD@HOST:PORT/DB), with the options that [New] requires.
// It connects when it is first used. Give locks a client of their own, so that a
// pool that others exhaust does not stop renewals.
func NewClient(url string) (redis.UniversalClient, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	opts.MaxRetries = -1
	opts.ContextTimeoutEnabled = true
	opts.DialerRetries = 1 // a refused connection is an answer, and the callers here try again themselves
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(opts), nil
}

// checkClient looks at the options of the clients it knows; a wrapper answers for itself.
func checkClient(rdb redis.UniversalClient) error {
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
