package identity

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// LookUpTimeout is how long the database may take to answer.
	LookUpTimeout = 2 * time.Second

	// MaxUnknownLookups limits concurrent lookups of prefixes that are not known to exist.
	MaxUnknownLookups = 4

	// maxWait is the maximum wait of such a lookup for its slot.
	maxWait = time.Second
)

// Outcomes of an authentication.
var (
	// ErrUnauthenticated says that the text is no key that works. It never says why; see
	// [RefusedError].
	ErrUnauthenticated = errors.New("identity: unauthenticated")

	// ErrUnavailable means that the key cannot be checked now. The same key may
	// be accepted later. Alongside it the error matches what the store returned.
	ErrUnavailable = errors.New("identity: keys cannot be checked now")
)

// Caller is the authenticated sender of a request.
type Caller struct {
	Customer  string // may read and change the orders of this customer; empty: none, unless Admin
	Admin     bool   // everything is allowed
	KeyPrefix string // of the key, for the log
}

// Reason says why a key was refused.
type Reason string

// The reasons.
const (
	ReasonMalformed Reason = "malformed"
	ReasonUnknown   Reason = "unknown_prefix"
	ReasonSecret    Reason = "wrong_secret"
	ReasonRevoked   Reason = "revoked"
	ReasonExpired   Reason = "expired"
)

// RefusedError is the error of a key that does not work. It matches [ErrUnauthenticated] and has
// its text. Its fields are for the log, not for the client.
type RefusedError struct {
	Prefix string // as it was sent; empty when the text has not the form of a key
	Why    Reason
}

// Error implements error.
func (*RefusedError) Error() string { return ErrUnauthenticated.Error() }

// Is makes the error match [ErrUnauthenticated].
func (*RefusedError) Is(target error) bool { return target == ErrUnauthenticated }

// LogValue implements [slog.LogValuer].
func (r *RefusedError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key_prefix", r.Prefix), slog.String("reason", string(r.Why)))
}

// Authenticate returns the caller of the key text. It may wait for the database, for at most some seconds
// or until ctx ends, but not for a key that was seen within [Config.Keep]. Errors: a [*RefusedError],
// which is [ErrUnauthenticated]; [ErrUnavailable], also when ctx ends.
func (s *Service) Authenticate(ctx context.Context, text string) (Caller, error) {
	t, err := ParseToken(text)
	if err != nil {
		return Caller{}, &RefusedError{Why: ReasonMalformed}
	}
	e, ok := s.cached(t.prefix)
	if !ok {
		if e, err = s.lookUp(ctx, t.prefix); err != nil {
			return Caller{}, fmt.Errorf("%w: %s: %w", ErrUnavailable, t, err)
		}
	}
	return e.judge(t, time.Now())
}

// cached returns what is remembered of prefix if it is younger than Keep.
func (s *Service) cached(prefix string) (entry, bool) {
	e, ok := s.memory.get(prefix)
	return e, ok && time.Since(e.read) < s.keep
}

// judge decides about t by what is remembered of its prefix.
func (e entry) judge(t Token, now time.Time) (Caller, error) {
	hash := t.Hash()
	same := subtle.ConstantTimeCompare(hash[:], e.hash[:]) == 1
	switch {
	case !e.exists:
		return Caller{}, &RefusedError{Prefix: t.prefix, Why: ReasonUnknown}
	case !same:
		return Caller{}, &RefusedError{Prefix: t.prefix, Why: ReasonSecret}
	case e.state == Revoked:
		return Caller{}, &RefusedError{Prefix: t.prefix, Why: ReasonRevoked}
	case e.state != Active, e.expires && !now.Before(e.ends):
		return Caller{}, &RefusedError{Prefix: t.prefix, Why: ReasonExpired}
	}
	return e.caller, nil
}

// lookUp reads a prefix from the database. Concurrent requests for the same prefix
// share the result, and no request cancels the lookup of the others. They do not share a lookup that started before
// something was forgotten.
func (s *Service) lookUp(ctx context.Context, prefix string) (entry, error) {
	round := s.memory.round()
	result := s.lookUps.DoChan(fmt.Sprint(prefix, " ", round), func() (any, error) {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), LookUpTimeout)
		defer cancel()
		return s.read(detached, prefix, round)
	})
	select {
	case r := <-result:
		e, ok := r.Val.(entry)
		if r.Err == nil && !ok {
			return entry{}, errors.New("identity: a lookup without an answer")
		}
		return e, r.Err
	case <-ctx.Done():
		return entry{}, context.Cause(ctx)
	}
}

// read queries the database and caches the result, unless another lookup did so after the caller had found
// none. The age of a result counts from when the question is sent, so that nothing is used longer than it should be.
func (s *Service) read(ctx context.Context, prefix string, round uint64) (entry, error) {
	if e, ok := s.cached(prefix); ok {
		return e, nil
	}
	if !s.memory.exists(prefix) {
		turn, cancel := context.WithTimeoutCause(ctx, maxWait, errors.New("too many unknown keys at once"))
		defer cancel()
		select {
		case s.unknownLookups <- struct{}{}:
			defer func() { <-s.unknownLookups }()
		case <-turn.Done():
			return entry{}, context.Cause(turn)
		}
	}
	e := entry{read: time.Now()}
	switch r, err := s.store.Key(ctx, prefix); {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return entry{}, err
	default:
		e.exists, e.hash, e.state = true, r.Hash, r.State
		e.caller = Caller{Customer: r.Customer, Admin: r.Admin, KeyPrefix: r.Prefix}
		e.expires, e.ends = !r.ExpiresAt.IsZero(), e.read.Add(r.Left)
	}
	s.memory.put(prefix, e, round)
	return e, nil
}
