package redisx

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Refused reports whether err proves that a script took nothing: Redis answered with an error,
// or the request never left. Scripts write last what counts, so that one which failed half-way
// has taken nothing.
func Refused(err error) bool {
	if _, ok := errors.AsType[redis.Error](err); ok {
		return true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// Uncertain reports whether the request that failed with err may be executed, now
// or later.
func Uncertain(err error) bool { return !errors.Is(err, ErrUnsent) && !Refused(err) }
