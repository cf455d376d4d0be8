package clustertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
)

func nameIsTaken(t testing.TB, h Harness, group string) {
	here, there := h.open(t, group), h.open(t, group)
	holder := member("a")
	p := Join(t, here, holder)
	seen := Follow(t, there.Members)
	seen.Until(t, "a", Lists("a"))
	_, before, _ := seen.Now()
	other := elsewhere("a")
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
	defer cancel()
	start := time.Now()
	_, err := there.Join(ctx, other)
	taken, ok := errors.AsType[*cluster.NameTakenError](err)
	if !ok || !taken.Holder.Equal(holder) || !errors.Is(err, cluster.ErrNameTaken) {
		t.Fatalf("Join = %v", err)
	}
	d := time.Since(start)
	t.Logf("the name is refused after %v", d)
	if d > 2*h.TTL+maxWait/4 {
		t.Errorf("the name is refused only after %v", d)
	}
	if view, steps, err := seen.Now(); err == nil && (len(view.Members) != 1 || !view.Members[0].Equal(holder) || steps > before+4) {
		t.Errorf("listed is %v, in %d steps", view, steps-before)
	}
	if p.Err() != nil {
		t.Errorf("the holder of the name: %v", p.Err())
	}
	nameless := cluster.Member{Name: "b"} // an address that is empty is that of nobody
	Join(t, here, nameless)
	short, stop := context.WithTimeout(t.Context(), max(h.TTL/4, time.Second))
	defer stop()
	if _, err := there.Join(short, nameless); !errors.Is(err, cluster.ErrNameTaken) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Join without an address = %v", err)
	}
}

func nameIsFreeAfterLeave(t testing.TB, h Harness, group string) {
	h.dying(t)
	here, there := h.open(t, group), h.open(t, group)
	p := Join(t, here, member("a"))
	other := elsewhere("a")
	var joining sync.WaitGroup
	defer joining.Wait()
	joined := make(chan error, 1)
	joining.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), maxWait)
		defer cancel()
		next, err := there.Join(ctx, other)
		joined <- err
		if err == nil {
			_ = next.Leave(ctx)
		}
	})
	select {
	case err := <-joined:
		t.Fatalf("Join alongside a live holder = %v", err)
	case <-time.After(h.TTL / 10):
	}
	leave(t, p)
	start := time.Now()
	if err := <-joined; err != nil {
		t.Error(err)
	}
	t.Logf("the name is taken %v after the leave", time.Since(start))
}

// oneOfTwoGetsTheName lets instances join under one name at the same time.
func oneOfTwoGetsTheName(t testing.TB, h Harness, group string) {
	const n = 4
	var (
		joining sync.WaitGroup
		mu      sync.Mutex
		winners []*cluster.Presence
	)
	for k := range n {
		i, m := h.open(t, group), member("a")
		m.Address = fmt.Sprint(k)
		joining.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
			defer cancel()
			p, err := i.Join(ctx, m)
			if err != nil && !errors.Is(err, cluster.ErrNameTaken) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, p)
			}
		})
	}
	joining.Wait()
	if len(winners) != 1 {
		t.Errorf("%d instances have the name", len(winners))
	}
	for _, p := range winners {
		leave(t, p)
	}
}

// restartJoinsAtOnce joins as an instance that was killed and comes again while its old
// entry is there. The old one here is alive: it ends, and does not take the name back.
func restartJoinsAtOnce(t testing.TB, h Harness, group string) {
	before, after := h.open(t, group), h.open(t, group)
	m := member("a")
	old := Join(t, before, m)
	seen := Follow(t, after.Members)
	seen.Until(t, "a", Lists("a"))
	m.Version = "v2"
	start := time.Now()
	again := Join(t, after, m)
	d := time.Since(start)
	t.Logf("a restart joins after %v", d)
	if h.TTL > 0 && d > h.TTL {
		t.Errorf("a restart joins only after %v", d)
	}
	isNew := func(v cluster.View, err error) bool { return Lists("a")(v, err) && v.Members[0].Version == "v2" }
	seen.Until(t, "the new one", isNew)
	ends(t, old)
	if !errors.Is(old.Err(), cluster.ErrReplaced) {
		t.Errorf("the old one: %v", old.Err())
	}
	_, steps, _ := seen.Now()
	pass(t, h.TTL/2)
	if view, now, err := seen.Now(); now > steps+2 || err == nil && !isNew(view, nil) || again.Err() != nil {
		t.Errorf("%d more steps, then %v; the new one: %v", now-steps, view, again.Err())
	}
	if err := old.Leave(t.Context()); !errors.Is(err, cluster.ErrReplaced) {
		t.Errorf("the old one leaves: %v", err)
	}
	seen.Until(t, "the new one", isNew)
}

// replacedWhileAway has an instance replaced that is cut off: it must not take the
// name back.
func replacedWhileAway(t testing.TB, h Harness, group string) {
	far, link := h.behind(t, group)
	near := h.open(t, group)
	m := member("a")
	old := Join(t, far, m)
	seen := Follow(t, near.Members)
	seen.Until(t, "a", Lists("a"))
	link.Cut()
	seen.Until(t, "nobody", Lists())
	m.Version = "v2"
	again := Join(t, near, m)
	link.Heal()
	ends(t, old)
	if !errors.Is(old.Err(), cluster.ErrReplaced) {
		t.Errorf("the old one: %v", old.Err())
	}
	seen.Until(t, "the new one", func(v cluster.View, err error) bool { return Lists("a")(v, err) && v.Members[0].Version == "v2" })
	if again.Err() != nil {
		t.Error(again.Err())
	}
}

// nameIsTakenWhileAway gives the name of an instance that is cut off to another one.
func nameIsTakenWhileAway(t testing.TB, h Harness, group string) {
	far, link := h.behind(t, group)
	near := h.open(t, group)
	old := Join(t, far, member("a"))
	link.Cut()
	other := elsewhere("a")
	start := time.Now()
	next := Join(t, near, other) // it waits until the entry expires
	t.Logf("the name is free after %v, the TTL being %v", time.Since(start), h.TTL)
	link.Heal()
	ends(t, old)
	if taken, ok := errors.AsType[*cluster.NameTakenError](old.Err()); !ok || !taken.Holder.Equal(other) {
		t.Errorf("the old one: %v", old.Err())
	}
	if next.Err() != nil {
		t.Error(next.Err())
	}
	Follow(t, near.Members).Until(t, "the new one", func(v cluster.View, err error) bool {
		return Lists("a")(v, err) && v.Members[0].Equal(other)
	})
}
