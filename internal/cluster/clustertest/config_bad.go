package clustertest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
)

func invalidIsNotWritten(t testing.TB, h Harness, group string) {
	c := settings(t, h.open(t, group))
	one := c.set(t, 8, 0)
	if _, err := c.permits.Set(t.Context(), 0, one); !errors.Is(err, cluster.ErrInvalid) {
		t.Errorf("Set of 0 = %v", err)
	}
	for text, want := range map[string]error{"abc": cluster.ErrInvalid, "": cluster.ErrInvalid, "-3": cluster.ErrInvalid} {
		if _, err := c.all.Set(t.Context(), "permits", text, one); !errors.Is(err, want) {
			t.Errorf("Set of %q = %v", text, err)
		}
	}
	if _, err := c.all.Set(t.Context(), "permit", "8", 0); !errors.Is(err, cluster.ErrUnknownKey) || !strings.Contains(err.Error(), "permits") {
		t.Errorf("Set of another name = %v, want the names that there are", err)
	}
	two, err := c.all.Set(t.Context(), "permits", "9", one) // nothing has come between
	if err != nil {
		t.Fatal(err)
	}
	Wait(t, "the value", c.has(9, two))
}

func badValueIsRefused(t testing.TB, h Harness, group string) {
	if h.Poke == nil {
		t.Skip("nobody else can write")
	}
	a, b := settings(t, h.open(t, group)), settings(t, h.open(t, group))
	one := a.set(t, 8, 0)
	Wait(t, "the value", func() bool { return a.has(8, one)() && b.has(8, one)() })
	h.Poke(t, group, "permits", "many")
	refused := func(err error) bool { return errors.Is(err, cluster.ErrInvalid) }
	for _, c := range []*copyOf{a, b} {
		Wait(t, "refusal", func() bool { return c.reported.count(refused) == 1 })
		if !c.has(8, one)() {
			t.Error("the last good value is gone")
		}
		state := c.all.All()[1]
		if state.Value != "8" || state.Version != one || state.Stored <= one || !refused(state.Refused) {
			t.Errorf("state %+v", state)
		}
	}
	// Another change does not make it count, or be reported again.
	if _, err := a.pace.Set(t.Context(), time.Minute, 0); err != nil {
		t.Fatal(err)
	}
	Wait(t, "another setting", func() bool { _, version := b.pace.Get(); return version > 0 })
	if n := b.reported.count(refused); n != 1 || !b.has(8, one)() {
		t.Errorf("reported %d times: %v", n, b.reported.all)
	}
	fresh := settings(t, h.open(t, group)) // it has never had a good value
	if err := fresh.all.Load(t.Context()); !errors.Is(err, cluster.ErrInvalid) || !fresh.has(64, 0)() {
		t.Errorf("Load = %v", err)
	}
	stored := b.all.All()[1].Stored
	three := b.set(t, 9, stored) // a good one, in its place
	for _, c := range []*copyOf{a, b, fresh} {
		Wait(t, "a good value", c.has(9, three))
		if state := c.all.All()[1]; state.Refused != nil || state.Stored != three {
			t.Errorf("state %+v", state)
		}
	}
}

func unsetIsTheDefault(t testing.TB, h Harness, group string) {
	if h.Unset == nil {
		t.Skip("nobody can delete an entry")
	}
	c := settings(t, h.open(t, group))
	for n := range 3 {
		version := c.set(t, n+1, 0)
		Wait(t, "the value", c.has(n+1, version))
		h.Unset(t, group, "permits")
		Wait(t, "the default", c.has(64, 0))
	}
}

// storeAwayKeepsTheLast cuts an instance off. The values in force stay, and it catches up.
func storeAwayKeepsTheLast(t testing.TB, h Harness, group string) {
	i, link := h.behind(t, group)
	far, near := settings(t, i), settings(t, h.open(t, group))
	one := near.set(t, 8, 0)
	Wait(t, "the value", far.has(8, one))
	if err := far.all.Stale(); err != nil {
		t.Error(err)
	}
	link.Cut()
	start := time.Now()
	Wait(t, "that it is stale", func() bool { return errors.Is(far.all.Stale(), cluster.ErrStale) })
	t.Logf("stale after %v, the TTL being %v", time.Since(start), h.TTL)
	two := near.set(t, 9, one)
	Wait(t, "the value", near.has(9, two))
	pass(t, h.TTL/4)
	if !far.has(8, one)() {
		t.Error("cut off, the value has changed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), h.TTL/4)
	defer cancel()
	if _, err := far.permits.Set(ctx, 10, two); err == nil || errors.Is(err, cluster.ErrConflict) {
		t.Errorf("Set without a store = %v", err)
	}
	if n := far.reported.count(func(err error) bool { return errors.Is(err, cluster.ErrStale) }); n != 1 {
		t.Errorf("reported %d times that it is stale", n)
	}
	// The write was sent: it may win yet, and then it is this one that is seen.
	link.Heal()
	start = time.Now()
	Wait(t, "the end of that", func() bool {
		value, version := far.permits.Get()
		return far.all.Stale() == nil && (value == 9 && version == two || value == 10 && version > two)
	})
	t.Logf("right again after %v", time.Since(start))
}

// lostReplyIsUncertain has the store execute a write whose writer does not know it.
func lostReplyIsUncertain(t testing.TB, h Harness, group string) {
	far, link := h.behind(t, group)
	near := settings(t, h.open(t, group))
	version := near.set(t, 8, 0)
	for n := range 2 {
		link.LoseWrite()
		if _, err := far.Write(t.Context(), "permits", strconv.Itoa(n+1), version); !errors.Is(err, cluster.ErrUncertain) || errors.Is(err, cluster.ErrConflict) {
			t.Fatalf("Write = %v", err)
		}
		if link.Lost() != n+1 {
			t.Fatal("no reply was lost, so the case proves nothing")
		}
		Wait(t, "the value", func() bool { value, _ := near.permits.Get(); return value == n+1 })
		if _, err := far.Write(t.Context(), "permits", strconv.Itoa(n+1), version); !errors.Is(err, cluster.ErrConflict) {
			t.Errorf("Write again = %v", err)
		}
		_, version = near.permits.Get()
	}
}
