package identity_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/identity"
)

func TestCreate(t *testing.T) {
	s, shelf := newService(t, identity.Config{})
	text, k, err := s.Create(t.Context(), identity.NewKey{Customer: "c1", Name: "till 3", Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	want := identity.Key{Prefix: prefixOf(text), Customer: "c1", Name: "till 3", State: identity.Active, CreatedAt: k.CreatedAt, ExpiresAt: k.CreatedAt.Add(time.Hour)}
	if diff := cmp.Diff(want, k); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	token, err := identity.ParseToken(text)
	if err != nil || shelf.keys[k.Prefix].Hash != token.Hash() {
		t.Errorf("stored %x, %v", shelf.keys[k.Prefix].Hash, err)
	}
	keys, err := s.List(t.Context(), "", 10)
	if err != nil || !cmp.Equal(keys, []identity.Key{k}) {
		t.Errorf("%+v, %v", keys, err)
	}
	if keys, err := s.List(t.Context(), k.Prefix, 10); err != nil || len(keys) != 0 {
		t.Errorf("after the last: %+v, %v", keys, err)
	}
}

// A prefix that is taken is no reason to fail, unless they all are.
func TestCreateTriesOtherPrefixes(t *testing.T) {
	s, shelf := newService(t, identity.Config{})
	shelf.taken = 2
	text := makeKey(t, s, identity.NewKey{Admin: true})
	if _, err := s.Authenticate(t.Context(), text); err != nil {
		t.Error(err)
	}
	shelf.taken = 1000
	if text, _, err := s.Create(t.Context(), identity.NewKey{Admin: true}); !errors.Is(err, identity.ErrExists) || text != "" {
		t.Errorf("%q, %v", text, err)
	}
	lost := errors.New("the answer is lost")
	shelf.taken, shelf.onCreated = 0, lost
	if text, k, err := s.Create(t.Context(), identity.NewKey{Admin: true}); !errors.Is(err, lost) || text != "" || k != (identity.Key{}) {
		t.Errorf("%q, %+v, %v", text, k, err)
	}
}

func TestNewKeysAreChecked(t *testing.T) {
	s, shelf := newService(t, identity.Config{})
	for _, n := range []identity.NewKey{
		{},
		{Name: "nobody's"},
		{Customer: "a b"},
		{Customer: "' OR 1=1", Admin: true},
		{Customer: strings.Repeat("c", 65)},
		{Customer: "c1\x00"},
		{Admin: true, Name: strings.Repeat("é", 65)},
		{Admin: true, Name: "two\nlines"},
		{Admin: true, Name: "\x1b[31m"},
		{Admin: true, Name: "\xff"},
		{Admin: true, Life: time.Second - 1},
		{Admin: true, Life: -time.Hour},
		{Admin: true, Life: identity.MaxLife + 1},
	} {
		if text, _, err := s.Create(t.Context(), n); !errors.Is(err, identity.ErrInvalid) || text != "" {
			t.Errorf("%+v: %v", n, err)
		}
	}
	if len(shelf.keys) != 0 {
		t.Errorf("%d of them are stored", len(shelf.keys))
	}
	for _, n := range []identity.NewKey{
		{Customer: "c"},
		{Customer: strings.Repeat("c", 64), Name: strings.Repeat("é", 64)},
		{Admin: true, Name: "Zoë's key (鍵)", Life: time.Second},
		{Admin: true, Customer: "c1", Life: identity.MaxLife},
	} {
		makeKey(t, s, n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []identity.Config{{Keep: -1}, {Keep: time.Hour}, {MaxKeys: -1}} {
		if _, err := identity.New(newShelf(), c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestRevoke(t *testing.T) {
	s, shelf := newService(t, identity.Config{})
	text := makeKey(t, s, identity.NewKey{Admin: true})
	k, err := s.Revoke(t.Context(), prefixOf(text))
	if err != nil || k.State != identity.Revoked || k.RevokedAt.IsZero() {
		t.Errorf("%+v, %v", k, err)
	}
	if again, err := s.Revoke(t.Context(), prefixOf(text)); err != nil || !cmp.Equal(k, again) {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := s.Revoke(t.Context(), "aaaaaaaaaa"); !errors.Is(err, identity.ErrNotFound) {
		t.Errorf("a key that is nobody's: %v", err)
	}
	away := errors.New("the database is unavailable")
	shelf.failing = away
	_, revoke := s.Revoke(t.Context(), prefixOf(text))
	_, list := s.List(t.Context(), "", 1)
	if !errors.Is(revoke, away) || !errors.Is(list, away) {
		t.Errorf("%v, %v", revoke, list)
	}
}

// Nothing that is returned, stored or logged shows the secret of a key, nor the text that a wrong key had in its place.
func TestSecretsAreNotShown(t *testing.T) {
	s, shelf := newService(t, identity.Config{Keep: time.Nanosecond})
	text, k, err := s.Create(t.Context(), identity.NewKey{Customer: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	wrong := forge(k.Prefix, goldenSecret())
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	note := func(vs ...any) {
		for _, v := range vs {
			fmt.Fprintf(&out, "%v %+v %#v\n", v, v, v)
			log.InfoContext(t.Context(), "noted", slog.Any("v", v))
		}
	}
	note(k)
	ask := func(text string) {
		c, err := s.Authenticate(t.Context(), text)
		note(c, err)
		if r, ok := errors.AsType[*identity.RefusedError](err); ok {
			note(r, *r)
		}
	}
	ask(text)
	ask(text[:71])
	ask("x" + text)
	ask(wrong)
	ask(golden)
	shelf.failing = errors.New("away")
	ask(text)
	shelf.failing = nil
	keys, err := s.List(t.Context(), "", 10)
	note(keys, err)
	revoked, err := s.Revoke(t.Context(), k.Prefix)
	note(revoked, err)
	ask(text)
	_, err = s.Revoke(t.Context(), "aaaaaaaaaa")
	note(err)
	for _, each := range []string{text, wrong, golden} {
		if printed := out.String(); strings.Contains(printed, each[16:30]) || strings.Contains(printed, each[30:]) {
			t.Errorf("%q is shown:\n%s", each, printed)
		}
	}
	for _, reason := range []identity.Reason{identity.ReasonMalformed, identity.ReasonSecret, identity.ReasonUnknown, identity.ReasonRevoked} {
		if !strings.Contains(out.String(), `"reason":"`+string(reason)+`"`) {
			t.Errorf("the log does not say %s:\n%s", reason, out.String())
		}
	}
}
