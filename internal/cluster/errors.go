package cluster

import (
	"errors"
	"fmt"
)

// Outcomes that every backend reports, to be tested with errors.Is.
var (
	// ErrNameTaken means that another live instance has the name; the error is a [*NameTakenError].
	ErrNameTaken = errors.New("cluster: name taken")

	// ErrReplaced means that an instance with the same name and address has joined later.
	ErrReplaced = errors.New("cluster: replaced by a later instance of the same name and address")

	// ErrLeft means that the member has left.
	ErrLeft = errors.New("cluster: left")

	// ErrStale means that the store does not answer, so that the value may be out of date.
	ErrStale = errors.New("cluster: may be out of date")

	// ErrStray means that the store has an entry that is none of this package. Observers receive it
	// once per entry.
	ErrStray = errors.New("cluster: not an entry")

	// ErrConflict means that another write came first; the error is a [*ConflictError].
	ErrConflict = errors.New("cluster: written by another")

	// ErrInvalid means that a value is not one that the setting can have.
	ErrInvalid = errors.New("cluster: invalid value")

	// ErrUnknownKey means that there is no such setting.
	ErrUnknownKey = errors.New("cluster: no such setting")

	// ErrReadOnly means that the configuration cannot be written.
	ErrReadOnly = errors.New("cluster: configuration is read-only")

	// ErrUncertain means that a write was sent and not answered. Read what has become of it.
	ErrUncertain = errors.New("cluster: outcome unknown")
)

// NameTakenError says who has the name. errors.Is(err, [ErrNameTaken]) holds for it.
type NameTakenError struct {
	Holder Member
}

// Error implements error.
func (e *NameTakenError) Error() string {
	return fmt.Sprintf("cluster: name %q is taken by a live instance at %q", e.Holder.Name, e.Holder.Address)
}

// Is makes the error match [ErrNameTaken].
func (e *NameTakenError) Is(target error) bool { return target == ErrNameTaken }

// ConflictError says what the store has instead. errors.Is(err, [ErrConflict]) holds for it.
type ConflictError struct {
	Name     string
	Expected int64 // the version that the write was meant for
	Current  Entry // what the store had a moment later; the zero Entry if none, or unknown
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("cluster: %s has version %d, and not %d: %v", e.Name, e.Current.Version, e.Expected, ErrConflict)
}

// Is makes the error match [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
