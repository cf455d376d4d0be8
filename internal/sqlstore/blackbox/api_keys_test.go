package blackbox_test

import (
	"bytes"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/identity"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// makeKey stores a key whose hash begins with its prefix.
func makeKey(t *testing.T, s *sqlstore.Store, k identity.Key, life time.Duration) (made identity.Key, hash [32]byte) {
	t.Helper()
	copy(hash[:], k.Prefix)
	hash[31] = 0xff // no text at all
	made, err := s.CreateKey(t.Context(), k, hash, life)
	if err != nil {
		t.Fatal(err)
	}
	return made, hash
}

func TestKeys(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		admin, _ := makeKey(t, s, identity.Key{Prefix: "b", Admin: true, Name: "Zoë's \"key\" 鍵"}, 0)
		customer, hash := makeKey(t, s, identity.Key{Prefix: "a", Customer: "c1"}, time.Hour)
		short, _ := makeKey(t, s, identity.Key{Prefix: "c", Customer: "C1"}, time.Microsecond)

		if admin.State != identity.Active || admin.CreatedAt.IsZero() || !admin.ExpiresAt.IsZero() || !admin.RevokedAt.IsZero() {
			t.Errorf("%+v", admin)
		}
		if want := customer.CreatedAt.Add(time.Hour); !customer.ExpiresAt.Equal(want) || customer.State != identity.Active {
			t.Errorf("%+v, want expiry at %v", customer, want)
		}
		r, err := s.Key(ctx, "a")
		if err != nil || r.Hash != hash || r.Left <= 50*time.Minute || r.Left > time.Hour {
			t.Errorf("%+v, %v", r, err)
		}
		if diff := cmp.Diff(customer, r.Key); diff != "" {
			t.Errorf("(-made +read):\n%s", diff)
		}
		expired := expiredKey(t, s, "c")
		if expired.State != identity.Expired || expired.Left > 0 || !expired.ExpiresAt.Equal(short.ExpiresAt) {
			t.Errorf("%+v", expired)
		}
		for after, want := range map[string][]identity.Key{"": {customer, admin}, "a": {admin, expired.Key}, "c": {}} {
			keys, err := s.Keys(ctx, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, keys); diff != "" {
				t.Errorf("behind %q (-want +got):\n%s", after, diff)
			}
		}
		for _, prefix := range []string{"A", "d", "' OR 1=1 --", ""} {
			if _, err := s.Key(ctx, prefix); !errors.Is(err, identity.ErrNotFound) {
				t.Errorf("%q: %v", prefix, err)
			}
			if _, err := s.RevokeKey(ctx, prefix); !errors.Is(err, identity.ErrNotFound) {
				t.Errorf("revoke %q: %v", prefix, err)
			}
		}
	})
}

// expiredKey waits until the database's clock has passed the expiry of a key.
func expiredKey(t *testing.T, s *sqlstore.Store, prefix string) identity.Record {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		r, err := s.Key(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != identity.Active || time.Now().After(end) {
			return r
		}
	}
}

// A key is revoked once, and a second revocation returns the time of the first one.
func TestRevokeKey(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		makeKey(t, s, identity.Key{Prefix: "other", Admin: true}, 0)
		made, hash := makeKey(t, s, identity.Key{Prefix: "a", Customer: "c1"}, time.Microsecond)
		first, err := s.RevokeKey(ctx, "a")
		if err != nil || first.State != identity.Revoked || first.RevokedAt.Before(made.CreatedAt) {
			t.Fatalf("%+v, %v", first, err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if again, err := s.RevokeKey(ctx, "a"); err != nil || !cmp.Equal(first, again) {
					t.Errorf("again: %v, %s", err, cmp.Diff(first, again))
				}
			})
		}
		wg.Wait()
		if r, err := s.Key(ctx, "a"); err != nil || r.Hash != hash || r.State != identity.Revoked {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := s.Key(ctx, "other"); err != nil || r.State != identity.Active {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A prefix belongs to the first who stores it; the same key again is no other key.
func TestPrefixIsTaken(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		made, hash := makeKey(t, s, identity.Key{Prefix: "a", Customer: "c1"}, time.Hour)
		if again, err := s.CreateKey(ctx, identity.Key{Prefix: "a", Customer: "c1"}, hash, time.Hour); err != nil || !cmp.Equal(made, again) {
			t.Errorf("again: %v, %s", err, cmp.Diff(made, again))
		}
		if _, err := s.CreateKey(ctx, identity.Key{Prefix: "a", Admin: true}, [32]byte{1}, 0); !errors.Is(err, identity.ErrExists) {
			t.Errorf("another secret: %v", err)
		}
		if r, err := s.Key(ctx, "a"); err != nil || r.Hash != hash || r.Admin {
			t.Errorf("%+v, %v", r, err)
		}
		made8 := make([]error, 8)
		var wg sync.WaitGroup
		for i := range made8 {
			wg.Go(func() {
				_, made8[i] = s.CreateKey(ctx, identity.Key{Prefix: "b", Admin: true, Name: fmt.Sprint(i)}, [32]byte{byte(i)}, 0)
			})
		}
		wg.Wait()
		won := 0
		for _, err := range made8 {
			if err == nil {
				won++
			} else if !errors.Is(err, identity.ErrExists) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d of 8 have the prefix", won)
		}
	})
}

// keysFail fails the test if anything about keys ends otherwise than with want.
func keysFail(t *testing.T, s *sqlstore.Store, want error) {
	t.Helper()
	ctx := t.Context()
	_, byPrefix := s.Key(ctx, "a")
	_, list := s.Keys(ctx, "", 1)
	_, revoke := s.RevokeKey(ctx, "a")
	_, create := s.CreateKey(ctx, identity.Key{Prefix: "a"}, [32]byte{1}, 0)
	for what, err := range map[string]error{"key": byPrefix, "keys": list, "revoke": revoke, "create": create} {
		if !errors.Is(err, want) || errors.Is(err, identity.ErrNotFound) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

// A database without the table says what is missing.
func TestKeysWithoutTheirTable(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		keysFail(t, s, sqlstore.ErrNoSchema)
	})
}

// The reply to COMMIT is lost: the key is made once and revoked once. When the database is
// away nothing is said about any key.
func TestKeysOfABrokenDatabase(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	proxy.DropReply("COMMIT")
	made, _ := makeKey(t, s, identity.Key{Prefix: "a", Admin: true}, 0)
	proxy.DropReply("COMMIT")
	if k, err := s.RevokeKey(t.Context(), "a"); err != nil || k.State != identity.Revoked || !k.CreatedAt.Equal(made.CreatedAt) {
		t.Errorf("%+v, %v", k, err)
	}
	if n := proxy.Dropped(); n != 2 {
		t.Errorf("%d replies were dropped, want 2", n)
	}
	proxy.Refuse()
	keysFail(t, s, stock.ErrUnavailable)
}

// From making a key to refusing it: the whole of it on a real database, and no byte of the
// secret in it.
func TestServiceOnARealStore(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		keys, err := identity.New(s, identity.Config{Keep: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		text, k, err := keys.Create(ctx, identity.NewKey{Customer: "c1", Name: "till 3", Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		caller, err := keys.Authenticate(ctx, text)
		for end := time.Now().Add(time.Minute); errors.Is(err, identity.ErrUnavailable) && time.Now().Before(end); { // it has two seconds
			caller, err = keys.Authenticate(ctx, text)
		}
		if want := (identity.Caller{Customer: "c1", KeyPrefix: k.Prefix}); err != nil || caller != want {
			t.Errorf("%+v, %v, want %+v", caller, err, want)
		}
		if _, err := keys.Revoke(ctx, k.Prefix); err != nil {
			t.Fatal(err)
		}
		if file, ok := strings.CutPrefix(url, "sqlite:"); ok {
			secretIsNotIn(t, text, k.Prefix, file, file+"-wal")
		}
		for end := time.Now().Add(time.Minute); !errors.Is(err, identity.ErrUnauthenticated); _, err = keys.Authenticate(ctx, text) {
			if time.Now().After(end) {
				t.Fatalf("the revoked key works: %v", err)
			}
		}
	})
}

// secretIsNotIn fails the test if the files have the secret of a key, or do not have its prefix.
func secretIsNotIn(t *testing.T, text, prefix string, files ...string) {
	t.Helper()
	var all []byte
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	secret, err := base32.StdEncoding.DecodeString(strings.ToUpper(text[16:]))
	if err != nil {
		t.Fatal(err)
	}
	for what, part := range map[string][]byte{"text": []byte(text[16:40]), "bytes": secret[:12]} {
		if bytes.Contains(all, part) {
			t.Errorf("the database has the %s of the secret", what)
		}
	}
	if !bytes.Contains(all, []byte(prefix)) {
		t.Error("the database does not even have the prefix")
	}
}
