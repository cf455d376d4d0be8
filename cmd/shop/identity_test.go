package main

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/sqlstore"
)

// Who heeds what is told of keys refuses one that was revoked elsewhere, though it has just been seen: when it is
// told, and when it may not have been.
func TestHeed(t *testing.T) {
	t.Parallel()
	database := sqliteURL(t)
	texts := make(map[string]string)
	for _, each := range []string{"told", "lost"} {
		_, texts[each] = newKey(t, database, "--customer", each)
	}
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database, Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
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
	go func() { ended <- heed(ctx, known, sub, slog.New(slog.DiscardHandler)) }()
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
	becomes(t, "the bus runs", func() bool { return bus.Stats().Live })
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
		shows(t, []string{"keys", "revoke", "--database", database, prefix}, "was revoked")
		seen := time.Now()
		if err := tell(prefix); err != nil {
			t.Error(err)
		}
		becomes(t, each+": the key is refused", func() bool { return !works(each) })
		if took := time.Since(seen); took > time.Minute {
			t.Errorf("%s: only after %v", each, took)
		}
	}
}

// The command tells all instances that share its Redis, and that listen; the streams of the key
// end. Without Redis the key is revoked all the same.
func TestRevokeTellsTheInstances(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	header, text := newKey(t, s.database, "--customer", "ann")
	prefix := text[5:15]
	fleet := []*running{
		start(t, append(s.flags, "--auth", "keys", "--instance", "shop-1")...), start(t, append(s.flags, "--auth", "keys", "--instance", "shop-2")...),
	}
	ends := make(chan error, len(fleet))
	client := customers(t)
	for _, r := range fleet {
		w := newPage(t, "?types=order")
		w.key = header[1]
		go func() { ends <- w.watch(t.Context(), r.url) }()
		becomes(t, "the stream has begun", func() bool { return w.count(func() int { return len(w.resets) }) > 0 })
	}
	var revoked time.Time
	becomes(t, "the instances are told", func() bool { // one that does not listen yet hears it the next time
		shows(t, []string{"keys", "revoke", "--database", s.database, "--redis", s.redis, prefix}, "was revoked")
		revoked = time.Now()
		for end := revoked.Add(time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			if !slices.ContainsFunc(fleet, func(r *running) bool {
				return !strings.Contains(r.stderr.String(), "a key was revoked") || !strings.Contains(r.stderr.String(), prefix)
			}) {
				return true
			}
		}
		return false
	})
	for _, r := range fleet {
		if a := insist(func() answer { return ask(t.Context(), client, http.MethodGet, r.url+"/api/v1/orders", "", header...) }); a.status != http.StatusUnauthorized {
			t.Errorf("the key that was revoked: %v", a)
		}
	}
	for range fleet {
		<-ends
	}
	t.Logf("two instances have refused the key, and its streams have ended, %v after the command", time.Since(revoked).Round(time.Millisecond))

	other, text := newKey(t, s.database, "--customer", "ben")
	code, out, stderr := call(t, noEnv, "keys", "revoke", "--database", s.database, "--redis", "redis://127.0.0.1:1/0", text)
	if code != 0 || !strings.Contains(out, "was revoked") || !strings.Contains(stderr, "not told") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	if a := insist(func() answer {
		return ask(t.Context(), client, http.MethodGet, fleet[0].url+"/api/v1/orders", "", other...)
	}); a.status != http.StatusUnauthorized {
		t.Errorf("the key that was revoked: %v", a)
	}
	if code, _, stderr := call(t, noEnv, "keys", "revoke", "--database", s.database, "--redis", "localhost", text); code != 2 || !strings.Contains(stderr, "--redis") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
