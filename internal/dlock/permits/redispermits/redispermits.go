// Package redispermits implements [permits.Store] on Redis: a hash with a field per instance, and one script that
// divides the permits.
package redispermits

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/platform/redisx"
)

//go:embed allocate.lua
var allocateSource string

var allocate = redis.NewScript(allocateSource)

// limitField is the field with the number of permits; those of instances are their names.
const limitField = ":limit"

// Store keeps the permits of one key in Redis. It is safe for concurrent use.
type Store struct {
	rdb redis.UniversalClient
	key string
}

var _ permits.Store = (*Store)(nil)

// New returns the store of key on rdb, which it does not close. All instances use the same key. New refuses the
// clients that [redisx.Check] refuses.
func New(rdb redis.UniversalClient, key string) (*Store, error) {
	if err := redisx.Check(rdb); err != nil {
		return nil, fmt.Errorf("redispermits: %w", err)
	}
	return &Store{rdb: rdb, key: "shop:permits:{" + key + "}"}, nil
}

// Renew implements [permits.Store].
func (s *Store) Renew(ctx context.Context, r permits.Renewal) (permits.Division, error) {
	answer, err := allocate.Run(ctx, s.rdb, []string{s.key},
		r.Instance, r.Held, r.Wanted, r.TTL.Milliseconds(), r.Permits, r.Hold.Milliseconds(), r.Call).Int64Slice()
	switch {
	case err != nil:
		return permits.Division{}, fmt.Errorf("redispermits: renew the lease: %w", err)
	case len(answer) != 5:
		return permits.Division{}, errors.New("redispermits: unexpected answer")
	}
	return permits.Division{
		Granted: int(answer[0]), Target: int(answer[1]), Permits: int(answer[2]), Held: int(answer[3]), Instances: int(answer[4]),
	}, nil
}

// Release implements [permits.Store].
func (s *Store) Release(ctx context.Context, instance string) error {
	return s.rdb.HDel(ctx, s.key, instance).Err()
}

// Resize implements [permits.Store].
func (s *Store) Resize(ctx context.Context, n int) error {
	return s.rdb.HSet(ctx, s.key, limitField, n).Err()
}
