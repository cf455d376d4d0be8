package redisx

import (
	"errors"
	"net"
	"slices"
	"strings"

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

// wrongServer are the codes of errors by which a server says that it is not, or no longer, the one that serves.
var wrongServer = []string{
	"READONLY",    // a replica
	"MASTERDOWN",  // a replica without its master
	"NOREPLICAS",  // a master that has lost its replicas
	"CLUSTERDOWN", // a node of a minority, or outside of a cluster
	"LOADING",     // a server that has just started
}

// WrongServer reports whether err is a server's statement that another server, or none, takes the request. A script may
// add text before the code, and so may a proxy.
func WrongServer(err error) bool {
	if _, ok := err.(redis.Error); !ok { //nolint:errorlint // It is asked for each reply, and go-redis wraps no replies.
		return false
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "!"), "ERR ")
	return slices.ContainsFunc(wrongServer, func(code string) bool {
		return strings.HasPrefix(text, code+" ") || strings.Contains(text, "-"+code+" ")
	})
}
