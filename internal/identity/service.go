package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
)

// Keep is the default of [Config.Keep].
const Keep = 5 * time.Second

const (
	defaultMaxKeys = 10_000
	maxKeep        = time.Minute
	prefixAttempts = 3 // one would do: two keys of a million share a prefix in one of 2,000 cases
)

// Config configures a Service.
type Config struct {
	// Keep is how long the result of a lookup is cached. Without a call of [Service.Forget], a revoked key works for at
	// most that long, or for [LookUpTimeout] if that is longer. Default 5 s, at most a minute.
	Keep time.Duration

	// MaxKeys limits the cached keys, and also the cached unknown prefixes.
	// Default 10,000, which is some 5 MB.
	MaxKeys int
}

// Validate reports what is out of bounds.
func (c Config) Validate() error {
	var bad []error
	if c.Keep < 0 || c.Keep > maxKeep {
		bad = append(bad, fmt.Errorf("identity: Keep %s: want up to %s", c.Keep, maxKeep))
	}
	if c.MaxKeys < 0 {
		bad = append(bad, fmt.Errorf("identity: MaxKeys %d: want 1 or more", c.MaxKeys))
	}
	return errors.Join(bad...)
}

// Service creates keys and checks them. It is safe for concurrent use.
type Service struct {
	store  Store
	keep   time.Duration
	memory *memory

	lookUps        singleflight.Group
	unknownLookups chan struct{} // one token per lookup of an unknown prefix
	watchers       watchers
}

// New returns a service on the keys in store.
func New(store Store, c Config) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Service{
		store:          store,
		keep:           cmp.Or(c.Keep, Keep),
		memory:         newMemory(cmp.Or(c.MaxKeys, defaultMaxKeys)),
		unknownLookups: make(chan struct{}, MaxUnknownLookups),
		watchers:       watchers{by: make(map[string]map[*watcher]struct{})},
	}, nil
}

// Create makes a key and stores it. text is the key as its holder needs it; it cannot be had
// again. Errors: [ErrInvalid], those of the store, after which the key may exist without a holder.
func (s *Service) Create(ctx context.Context, n NewKey) (text string, k Key, err error) {
	if err := n.Validate(); err != nil {
		return "", Key{}, err
	}
	for range prefixAttempts {
		t := NewToken()
		k, err = s.store.CreateKey(ctx, Key{Prefix: t.prefix, Customer: n.Customer, Admin: n.Admin, Name: n.Name}, t.Hash(), n.Life)
		if err == nil {
			return t.Reveal(), k, nil
		}
		if !errors.Is(err, ErrExists) {
			break
		}
	}
	return "", Key{}, fmt.Errorf("create a key: %w", err)
}

// List returns up to limit keys in the order of their prefixes, beginning after the prefix
// after. Errors: those of the store.
func (s *Service) List(ctx context.Context, after string, limit int) ([]Key, error) {
	keys, err := s.store.Keys(ctx, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// Revoke ends a key for good. It still works for at most [Config.Keep] where it is in use, in
// other processes, unless they call [Service.Forget]. A revoked key stays revoked. Errors: [ErrNotFound], those of
// the store, after which the key may be revoked.
func (s *Service) Revoke(ctx context.Context, prefix string) (Key, error) {
	k, err := s.store.RevokeKey(ctx, prefix)
	s.Forget(prefix) // it may be revoked whatever the error is
	if err != nil {
		return Key{}, fmt.Errorf("revoke a key: %w", err)
	}
	return k, nil
}
