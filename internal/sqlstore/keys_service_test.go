package sqlstore_test

import (
	"bytes"
	"encoding/base32"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/identity"
)

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
