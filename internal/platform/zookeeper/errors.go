package zookeeper

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

var (
	// ErrUnavailable means that a request was not sent, because no server answers.
	ErrUnavailable = errors.New("zookeeper: no server answers")

	// ErrUncertain means that a request was sent and not answered. It may have been
	// executed, or be executed yet.
	ErrUncertain = errors.New("zookeeper: outcome unknown")

	// ErrClosed means that the session was closed.
	ErrClosed = errors.New("zookeeper: session closed")
)

// refusals are answers that prove that a request was not executed.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoChildrenForEphemerals,
	zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL, zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrBadArguments,
}

// unavailable are errors of a session that takes no requests: this one was not executed.
var unavailable = []error{zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved}

// explain says what an error of zk means for the request. One that is in no list, as that of a connection that was closed,
// leaves its outcome unknown.
func explain(err error) error {
	is := func(class error) bool { return errors.Is(err, class) }
	switch {
	case err == nil, slices.ContainsFunc(refusals, is):
		return err
	case slices.ContainsFunc(unavailable, is):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", ErrUncertain, err)
}
