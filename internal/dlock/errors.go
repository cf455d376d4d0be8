package dlock

import (
	"context"
	"errors"
	"fmt"
)

// Outcomes of all backends. Test them with errors.Is.
var (
	// ErrHeld means that another owner has the key.
	ErrHeld = errors.New("dlock: held by another owner")

	// ErrLost means that the lease ended without being released; the error is a [*LostError].
	ErrLost = errors.New("dlock: lease lost")

	// ErrReleased means that the lease was released before.
	ErrReleased = errors.New("dlock: lease released")

	// ErrUncertain means that an attempt was sent and its outcome is unknown.
	// The backend rolls it back in the background; at the latest, the TTL frees the key.
	ErrUncertain = errors.New("dlock: outcome unknown")

	// ErrReentry means that the caller's context holds the key already and must not
	// acquire it again: it would wait for itself. See [Reenter].
	ErrReentry = errors.New("dlock: held by the caller")

	// ErrFenced is an error of the resource: it refused a fencing token that is older than the last one that it
	// accepted. A token with the same number and another owner is refused too. See [Fence.Passes].
	ErrFenced = errors.New("dlock: fencing token is stale")
)

// Reason is the reason for the loss of a lease. It is safe as a metric label.
type Reason string

// Reasons for a loss.
const (
	// Expired means that the validity window closed before a renewal was
	// acknowledged, or that the store no longer knows the lease.
	Expired Reason = "expired"

	// Taken means that the store has another owner for the key.
	Taken Reason = "taken"

	// Forced means that the key was force-released; see [ForceReleaser].
	Forced Reason = "forced"

	// MaxHold means that the lease reached [Grant].MaxHold.
	MaxHold Reason = "max_hold"

	// Closed means that the client that kept the lease alive was closed.
	Closed Reason = "closed"
)

// LostError is the cause of a loss. errors.Is(err, [ErrLost]) holds for it.
type LostError struct {
	Key    string
	Fence  Fence
	Reason Reason
}

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("dlock: lease of %q with fence %d lost: %s", e.Key, e.Fence.Token, e.Reason)
}

// Is makes the error match [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Ended returns the error of an ended ctx together with its cause, and matches both. The cause may be the error of
// another acquisition, which does not apply to this one. So it does not match [ErrHeld], [ErrUncertain], [ErrReentry]
// and [ErrInvalidPermits] in the cause. A backend must classify the reply of its store before it adds Ended, because
// a cause can look like a reply.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return &ended{err, cause}
}

// ended is the end of a context.
type ended struct{ err, cause error }

// Error implements error.
func (e *ended) Error() string { return fmt.Sprintf("%v: %v", e.err, e.cause) }

// Unwrap returns the error of the context.
func (e *ended) Unwrap() error { return e.err }

// Is matches the cause, except for outcomes of an acquisition.
func (e *ended) Is(target error) bool {
	switch target {
	case ErrHeld, ErrUncertain, ErrReentry, ErrInvalidPermits:
		return false
	}
	return errors.Is(e.cause, target)
}

// As finds a type in the cause.
func (e *ended) As(target any) bool { return errors.As(e.cause, target) }
