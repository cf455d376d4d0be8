package identity_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/identity"
)

// skew is how far the clock of the shelf is from that of whoever asks.
const skew = -90 * time.Minute

// shelf keeps keys in memory, behind a network that can be slow, shut or broken.
type shelf struct {
	mu        sync.Mutex
	keys      map[string]identity.Record
	lookUps   int
	atOnce    int // lookups that are under way
	most      int // atOnce at its highest
	failing   error
	reply     time.Duration // how long an answer is on its way
	taken     int           // how many new keys are to be notified that their prefix is taken
	onCreated error         // the error of a key that was stored all the same
}

func newShelf() *shelf { return &shelf{keys: make(map[string]identity.Record)} }

func (*shelf) now() time.Time { return time.Now().Add(skew) }

func (s *shelf) CreateKey(_ context.Context, k identity.Key, hash [32]byte, life time.Duration) (identity.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken > 0 {
		s.taken--
		return identity.Key{}, fmt.Errorf("%w: %q", identity.ErrExists, k.Prefix)
	}
	k.State, k.CreatedAt = identity.Active, s.now()
	if life > 0 {
		k.ExpiresAt = k.CreatedAt.Add(life)
	}
	s.keys[k.Prefix] = identity.Record{Key: k, Hash: hash}
	return k, s.onCreated
}

// Key reads at once; only the answer takes its time.
func (s *shelf) Key(ctx context.Context, prefix string) (identity.Record, error) {
	s.mu.Lock()
	r, ok := s.keys[prefix]
	if !r.ExpiresAt.IsZero() {
		r.Left = r.ExpiresAt.Sub(s.now())
		if r.Left <= 0 && r.State == identity.Active {
			r.State = identity.Expired
		}
	}
	reply, err := s.reply, s.failing
	s.lookUps++
	s.atOnce++
	s.most = max(s.most, s.atOnce)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.atOnce--
	}()
	if reply > 0 {
		select {
		case <-time.After(reply):
		case <-ctx.Done():
			return identity.Record{}, context.Cause(ctx)
		}
	}
	switch {
	case err != nil:
		return identity.Record{}, err
	case !ok:
		return identity.Record{}, fmt.Errorf("%w: %q", identity.ErrNotFound, prefix)
	}
	return r, nil
}

func (s *shelf) Keys(_ context.Context, after string, limit int) ([]identity.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []identity.Key
	for _, r := range slices.SortedFunc(maps.Values(s.keys), func(a, b identity.Record) int { return cmp.Compare(a.Prefix, b.Prefix) }) {
		if r.Prefix > after && len(keys) < limit {
			keys = append(keys, r.Key)
		}
	}
	return keys, s.failing
}

func (s *shelf) RevokeKey(_ context.Context, prefix string) (identity.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.keys[prefix]
	if !ok {
		return identity.Key{}, fmt.Errorf("%w: %q", identity.ErrNotFound, prefix)
	}
	if r.State != identity.Revoked {
		r.State, r.RevokedAt = identity.Revoked, s.now()
		s.keys[prefix] = r
	}
	return r.Key, s.failing
}

// set changes how the shelf behaves.
func (s *shelf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// count returns how many lookups there were.
func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookUps
}

// newService returns a service on an empty shelf.
func newService(t *testing.T, c identity.Config) (*identity.Service, *shelf) {
	t.Helper()
	s := newShelf()
	service, err := identity.New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return service, s
}

// makeKey returns the text of a new key.
func makeKey(t *testing.T, s *identity.Service, n identity.NewKey) string {
	t.Helper()
	text, _, err := s.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// prefixOf returns the prefix of a key.
func prefixOf(text string) string { return text[5:15] }

// forge writes a key by the description of the format, as anybody can.
func forge(prefix string, secret [32]byte) string {
	sum := sha256.Sum256(append([]byte("shop_"+prefix+"_"), secret[:]...))
	letters := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	return "shop_" + prefix + "_" + letters.EncodeToString(append(secret[:], sum[:3]...))
}

// guess returns a key that is nobody's, a different one for each n.
func guess(n int) string {
	t := identity.NewToken()
	return forge(t.Prefix(), [32]byte{byte(n), byte(n >> 8)})
}
