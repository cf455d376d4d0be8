package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/testbed/testbedtest"
)

// An instance that watches revocations refuses one that was revoked elsewhere, though it has just been seen: when it is
// told, and when it may not have been.
func TestWatchRevocations(t *testing.T) {
	t.Parallel()
	store := openTestStore(t, "sqlite:"+t.TempDir()+"/shop.db")
	keys, err := identity.New(store, identity.Config{})
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, each := range []string{"told", "lost"} {
		if texts[each], _, err = keys.Create(t.Context(), identity.NewKey{Customer: each}); err != nil {
			t.Fatal(err)
		}
	}
	known, err := identity.New(store, identity.Config{Keep: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	hub := new(membus.Hub)
	bus, err := membus.New(hub, membus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := bus.Subscribe(revokedTopic)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- bus.Run(ctx) }()
	go func() { ended <- watchRevocations(ctx, known, sub, slog.New(slog.DiscardHandler)) }()
	defer func() {
		stop()
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}()
	works := func(each string) bool {
		_, err := known.Authenticate(t.Context(), texts[each])
		return err == nil
	}
	testbedtest.Eventually(t, "the bus runs", func() bool { return bus.Stats().Live })
	for each, tell := range map[string]func(prefix string) error{
		"told": func(prefix string) error { return bus.Publish(revokedTopic, prefix) },
		"lost": func(prefix string) (err error) {
			hub.Interrupt(func() { err = bus.Publish(revokedTopic, prefix) })
			return err
		},
	} {
		prefix := texts[each][5:15]
		if !works(each) {
			t.Errorf("%s: the key does not work", each)
		}
		if _, err := keys.Revoke(t.Context(), prefix); err != nil {
			t.Fatal(err)
		}
		seen := time.Now()
		if err := tell(prefix); err != nil {
			t.Error(err)
		}
		testbedtest.Eventually(t, each+": the key is refused", func() bool { return !works(each) })
		if took := time.Since(seen); took > time.Minute {
			t.Errorf("%s: only after %v", each, took)
		}
	}
}
