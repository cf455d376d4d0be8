package clustertest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
)

// lostReplyLeavesOneEntry has the store list a member that does not know it.
func lostReplyLeavesOneEntry(t testing.TB, h Harness, group string) {
	far, link := h.behind(t, group)
	near := h.open(t, group)
	seen := Follow(t, near.Members)
	for range 3 {
		lost := link.Lost()
		link.LoseJoin()
		p := Join(t, far, member("a"))
		if link.Lost() != lost+1 {
			t.Fatal("no reply was lost, so the case proves nothing")
		}
		seen.Until(t, "one entry", Lists("a"))
		leave(t, p)
		seen.Until(t, "none", Lists())
	}
}

func lostEntryComesBack(t testing.TB, h Harness, group string) {
	here, there := h.open(t, group), h.open(t, group)
	p := Join(t, here, member("a"))
	Join(t, there, member("b"))
	var took []time.Duration
	for range 3 {
		h.Expire(t, group, "a")
		start := time.Now()
		Wait(t, "return of a", func() bool {
			for view, err := range there.Members(t.Context()) {
				return Lists("a", "b")(view, err)
			}
			return false
		})
		took = append(took, time.Since(start))
	}
	h.promptly(t, "an entry that was lost", took)
	if p.Err() != nil {
		t.Error(p.Err())
	}
}

func cutOffMemberComesBack(t testing.TB, h Harness, group string) {
	far, link := h.behind(t, group)
	near := h.open(t, group)
	p := Join(t, far, member("a"))
	Join(t, near, member("b"))
	seen := Follow(t, near.Members)
	seen.Until(t, "both", Lists("a", "b"))
	link.Cut()
	t.Logf("it is gone %v after it was cut off, the TTL being %v", seen.Until(t, "b alone", Lists("b")), h.TTL)
	link.Heal()
	t.Logf("recovered after %v", seen.Until(t, "both", Lists("a", "b")))
	if p.Err() != nil {
		t.Error(p.Err())
	}
}

// staleIsSaid cuts one off that watches.
func staleIsSaid(t testing.TB, h Harness, group string) {
	far, link := h.behind(t, group)
	near := h.open(t, group)
	Join(t, near, member("a"))
	seen := Follow(t, far.Members)
	seen.Until(t, "a", Lists("a"))
	link.Cut()
	d := seen.Until(t, "that it is stale", func(v cluster.View, err error) bool {
		return errors.Is(err, cluster.ErrStale) && slices.Equal(Names(v), []string{"a"})
	})
	t.Logf("stale is said after %v, the TTL being %v", d, h.TTL)
	if d > 2*h.TTL {
		t.Errorf("stale is said only after %v", d)
	}
	Join(t, near, member("b"))
	pass(t, h.TTL/4)
	if v, _, err := seen.Now(); err == nil {
		t.Errorf("cut off it has seen %v", v)
	}
	first := Follow(t, far.Members)
	first.Until(t, "that nothing is known", func(v cluster.View, err error) bool {
		return errors.Is(err, cluster.ErrStale) && len(v.Members) == 0
	})
	link.Heal()
	t.Logf("it is right again after %v", seen.Until(t, "both", Lists("a", "b")))
	first.Until(t, "both", Lists("a", "b"))
}

func straysAreIgnored(t testing.TB, h Harness, group string) {
	if h.Stray == nil {
		t.Skip("nobody else can write")
	}
	var reported errorLog
	here, there := h.open(t, group), h.New(t, group, reported.add)
	Join(t, here, member("a"))
	n := h.Stray(t, group)
	seen := Follow(t, there.Members)
	seen.Until(t, "a and the strays", func(v cluster.View, err error) bool { return Lists("a")(v, err) && v.Ignored == n })
	Join(t, there, member("b"))
	seen.Until(t, "b too", func(v cluster.View, err error) bool { return Lists("a", "b")(v, err) && v.Ignored == n })
	Follow(t, there.Members).Until(t, "both", Lists("a", "b"))
	if got := reported.count(func(err error) bool { return errors.Is(err, cluster.ErrStray) }); got != n {
		t.Errorf("reported of %d strays, want each of %d once: %v", got, n, reported.all)
	}
}
