package app

import (
	"log/slog"
	"testing"
	"time"

	"example.com/shop/internal/events/broadcast"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// An instance refuses a key that another process has revoked, although the key has just worked. It does so after the
// message, and after a notice that messages may be missing.
func TestWatchRevocations(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, "sqlite:"+t.TempDir()+"/shop.db")
	keys, err := identity.New(store, identity.Config{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := identity.New(store, identity.Config{Keep: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for what, event := range map[string]func(prefix string) broadcast.Event{
		"message": func(prefix string) broadcast.Event { return broadcast.Event{Payload: prefix} },
		"notice":  func(string) broadcast.Event { return broadcast.Event{Missed: true} },
	} {
		text, _, err := keys.Create(t.Context(), identity.NewKey{Customer: what})
		if err != nil {
			t.Fatal(err)
		}
		works := func() bool {
			_, err := known.Authenticate(t.Context(), text)
			return err == nil
		}
		if !works() {
			t.Errorf("%s: the key does not work", what)
		}
		prefix := text[5:15]
		if _, err := keys.Revoke(t.Context(), prefix); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		watchRevocations(t.Context(), known, func(yield func(broadcast.Event) bool) { yield(event(prefix)) }, slog.New(slog.DiscardHandler))
		testbedtest.Eventually(t, what+": the key is refused", func() bool { return !works() })
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: only after %v", what, took)
		}
	}
}
