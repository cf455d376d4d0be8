package clustertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/cluster"
)

func membershipCases() []testCase {
	return []testCase{
		{"JoinIsSeen", joinIsSeen},
		{"FirstViewIsOfNow", firstViewIsOfNow},
		{"LeaveIsSeen", leaveIsSeen},
		{"ChangesAreMerged", changesAreMerged},
		{"InvalidMemberIsRefused", invalidMemberIsRefused},
		{"DeadContextJoinsNothing", deadContextJoinsNothing},
		{"NameIsTaken", nameIsTaken},
		{"NameIsFreeAfterLeave", nameIsFreeAfterLeave},
		{"OneOfTwoGetsTheName", oneOfTwoGetsTheName},
		{"RestartJoinsAtOnce", restartJoinsAtOnce},
		{"LostReplyLeavesOneEntry", lostReplyLeavesOneEntry},
		{"LostEntryComesBack", lostEntryComesBack},
		{"CutOffMemberComesBack", cutOffMemberComesBack},
		{"ReplacedWhileAway", replacedWhileAway},
		{"NameIsTakenWhileAway", nameIsTakenWhileAway},
		{"StaleIsReported", staleIsSaid},
		{"StraysAreIgnored", straysAreIgnored},
	}
}

// member returns one with a name, at an address of its own.
func member(name string) cluster.Member {
	started := time.Now().UTC().Truncate(time.Millisecond)
	return cluster.Member{Name: name, Address: name + ":8080", Role: "shop", Version: "v1.2.3", Started: started}
}

// elsewhere returns a member with a name and the address of another instance.
func elsewhere(name string) cluster.Member {
	m := member(name)
	m.Address = "elsewhere:8080"
	return m
}

// ends waits until p is over.
func ends(t testing.TB, p *cluster.Presence) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(maxWait):
		t.Fatal("the old one does not end")
	}
}

// leave ends p, and fails the test if that fails.
func leave(t testing.TB, p *cluster.Presence) {
	t.Helper()
	if err := p.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

// Join makes m a member until the test ends.
func Join(t testing.TB, i cluster.Membership, m cluster.Member) *cluster.Presence {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	p, err := i.Join(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Leave(t.Context()) })
	return p
}

// Names are those of the members of v.
func Names(v cluster.View) []string {
	names := make([]string, len(v.Members))
	for i, m := range v.Members {
		names[i] = m.Name
	}
	return names
}

// Lists reports whether a view is right and has those names.
func Lists(names ...string) func(cluster.View, error) bool {
	return func(v cluster.View, err error) bool { return err == nil && slices.Equal(Names(v), names) }
}

func joinIsSeen(t testing.TB, h Harness, group string) {
	here, there := h.open(t, group), h.open(t, group)
	seen := Follow(t, there.Members)
	seen.Until(t, "nobody", Lists())
	odd := member("b;ö / 1%2F.-")
	odd.Address, odd.Role, odd.Version = "http://[::1]:80/?q=a&b", "", "..;-0000000001"
	Join(t, here, odd)
	seen.Until(t, "the first one", Lists(odd.Name))
	plain := member("a")
	Join(t, there, plain)
	seen.Until(t, "both, in order", Lists(plain.Name, odd.Name))
	view, _, _ := seen.Now()
	if diff := cmp.Diff(cluster.View{Members: []cluster.Member{plain, odd}}, view); diff != "" {
		t.Error(diff)
	}
	var joins, leaves []time.Duration
	for range 4 {
		p := Join(t, here, member("c"))
		joins = append(joins, seen.Until(t, "one more", Lists(plain.Name, odd.Name, "c")))
		start := time.Now()
		leave(t, p)
		seen.Until(t, "one less", Lists(plain.Name, odd.Name))
		leaves = append(leaves, time.Since(start))
	}
	h.promptly(t, "a join", joins)
	h.promptly(t, "a leave", leaves)
}

func firstViewIsOfNow(t testing.TB, h Harness, group string) {
	here, there := h.open(t, group), h.open(t, group)
	Join(t, here, member("a"))
	Follow(t, there.Members).Until(t, "a", Lists("a")) // a server that lags has caught up
	for view, err := range there.Members(t.Context()) {
		if !Lists("a")(view, err) {
			t.Errorf("the first view is %v, %v", view, err)
		}
		break
	}
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	for view, err := range there.Members(dead) {
		t.Errorf("after the end of the context: %v, %v", view, err)
	}
}

func leaveIsSeen(t testing.TB, h Harness, group string) {
	here, there := h.open(t, group), h.open(t, group)
	seen := Follow(t, there.Members)
	p := Join(t, here, member("a"))
	Join(t, there, member("b"))
	seen.Until(t, "both", Lists("a", "b"))
	dead, cancel := context.WithCancel(t.Context())
	cancel() // a dead context leaves too
	if err := errors.Join(p.Err(), p.Leave(dead)); err != nil {
		t.Error(err)
	}
	seen.Until(t, "b alone", Lists("b"))
	if <-p.Done(); !errors.Is(p.Err(), cluster.ErrLeft) {
		t.Errorf("Err = %v", p.Err())
	}
	Join(t, here, member("a")) // again
	seen.Until(t, "both again", Lists("a", "b"))
}

// changesAreMerged has one that is slow, and gets what is left of many changes.
func changesAreMerged(t testing.TB, h Harness, group string) {
	here, there := h.open(t, group), h.open(t, group)
	const n = 10
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	steps := 0
	for view, err := range there.Members(ctx) {
		if steps++; steps == 1 {
			for range n {
				leave(t, Join(t, here, member("a")))
			}
			Join(t, here, member("b"))
		}
		if Lists("b")(view, err) {
			break
		}
	}
	if ctx.Err() != nil || steps > 4 {
		t.Errorf("%d steps, %v", steps, ctx.Err())
	}
}

func invalidMemberIsRefused(t testing.TB, h Harness, group string) {
	i := h.open(t, group)
	for _, m := range []cluster.Member{{}, {Name: "a\nb"}, {Name: "a", Role: "\xff"}, {Name: string(make([]byte, 1000))}} {
		if p, err := i.Join(t.Context(), m); err == nil {
			t.Errorf("%.20q has joined", m)
			_ = p.Leave(t.Context())
		}
	}
}

func deadContextJoinsNothing(t testing.TB, h Harness, group string) {
	i := h.open(t, group)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if _, err := i.Join(ctx, member("a")); !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("Join = %v", err)
	}
	Follow(t, i.Members).Until(t, "nobody", Lists())
}
