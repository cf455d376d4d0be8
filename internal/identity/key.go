package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/shop/internal/platform/party"
)

// MaxLife is the longest that a key can be made to last, unless it lasts for ever.
const MaxLife = 10 * 365 * 24 * time.Hour

const maxName = 64

// Outcomes of an operation on keys.
var (
	// ErrNotFound says that there is no key with that prefix.
	ErrNotFound = errors.New("identity: no such key")

	// ErrExists says that a prefix is taken.
	ErrExists = errors.New("identity: the prefix is taken")

	// ErrInvalid says that an argument is outside its bounds.
	ErrInvalid = errors.New("identity: invalid argument")
)

// State says whether a key works.
type State string

// The states of a key, by the database's clock. A key that is revoked and past its ExpiresAt
// is revoked.
const (
	Active  State = "ACTIVE"
	Expired State = "EXPIRED"
	Revoked State = "REVOKED"
)

// Key is what is known of a key, all but its secret. Times are by the database's clock.
type Key struct {
	Prefix    string
	Customer  string // whose orders it may see and change; may be empty if it is an admin's
	Admin     bool   // it may do everything
	Name      string // a label for people; may be empty
	State     State  // when it was read
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: it is not
}

// Record is a key as it is stored.
type Record struct {
	Key
	Hash [32]byte      // of the secret, see [Token.Hash]
	Left time.Duration // until ExpiresAt, at the time of reading; 0 when there is none
}

// NewKey is a key that is to be made.
type NewKey struct {
	Customer string        // an id as orders have it; may be empty if Admin
	Admin    bool          // whether it may do everything
	Name     string        // up to 64 printable characters
	Life     time.Duration // until it expires, at least a second and at most MaxLife; 0: never
}

// Validate reports what is out of bounds, as [ErrInvalid].
func (n NewKey) Validate() error {
	var bad []error
	switch {
	case n.Customer == "" && !n.Admin:
		bad = append(bad, fmt.Errorf("%w: a key is a customer's or an admin's", ErrInvalid))
	case n.Customer != "" && !party.ValidID(n.Customer):
		bad = append(bad, fmt.Errorf("%w: customer %q: want 1 to 64 letters, digits and . _ : @ -, beginning with a letter or digit", ErrInvalid, n.Customer))
	}
	if utf8.RuneCountInString(n.Name) > maxName || strings.ContainsFunc(n.Name, unprintable) {
		bad = append(bad, fmt.Errorf("%w: name %q: want at most %d printable characters", ErrInvalid, n.Name, maxName))
	}
	if n.Life != 0 && (n.Life < time.Second || n.Life > MaxLife) {
		bad = append(bad, fmt.Errorf("%w: %s: a key lasts 1s to %s, or for ever", ErrInvalid, n.Life, MaxLife))
	}
	return errors.Join(bad...)
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// Store keeps keys. The errors of a database that does not answer are its own.
type Store interface {
	// CreateKey stores a key that is active from now on and expires after life, if that is
	// not 0. It returns k with State and times, or [ErrExists] when another key has its
	// prefix. The same prefix and hash again is the same key.
	CreateKey(ctx context.Context, k Key, hash [32]byte, life time.Duration) (Key, error)

	// Key returns the key with the given prefix, or [ErrNotFound].
	Key(ctx context.Context, prefix string) (Record, error)

	// Keys returns up to limit keys in the order of their prefixes, beginning after after.
	Keys(ctx context.Context, after string, limit int) ([]Key, error)

	// RevokeKey ends a key now. One that is revoked stays as it is. It returns the key, or
	// [ErrNotFound].
	RevokeKey(ctx context.Context, prefix string) (Key, error)
}
