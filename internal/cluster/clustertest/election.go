package clustertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func electionCases() []testCase {
	return []testCase{
		{"OneLeads", oneLeads},
		{"ResignHandsOn", resignHandsOn},
		{"ElectedInOrder", electedInOrder},
		{"CancelledCampaignLeavesNothing", cancelledCampaignLeavesNothing},
		{"ObserversReceiveEveryLeader", observeTells},
		{"ObserverReportsStale", observerIsStale},
		{"LeadTakesTurns", leadTakesTurns},
		{"LeadEndsWithItsContext", leadEndsWithItsContext},
		{"LossEndsTheWork", lossEndsTheWork},
		{"CutOffLeaderStopsFirst", cutOffLeaderStopsFirst},
	}
}

// Elect returns an instance as a candidate for the leadership of its group, or skips a case that needs one.
func Elect(t testing.TB, i Instance, group, name string) cluster.Election {
	t.Helper()
	if i.Elect == nil {
		t.Skip("the store has no elections")
	}
	e, err := i.Elect(group, name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// await waits until e leads. It returns nil, and fails the test, if that takes too long.
func await(t testing.TB, e cluster.Election) *cluster.Term {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
	defer cancel()
	term, err := e.Campaign(ctx)
	if err != nil {
		t.Error(err)
	}
	return term
}

// Campaign waits until e leads. The term ends with the test.
func Campaign(t testing.TB, e cluster.Election) *cluster.Term {
	t.Helper()
	term := await(t, e)
	if term == nil {
		t.FailNow()
	}
	t.Cleanup(func() { _ = term.Resign(t.Context()) })
	return term
}

func resign(t testing.TB, term *cluster.Term) {
	t.Helper()
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

func oneLeads(t testing.TB, h Harness, group string) {
	a, b := Elect(t, h.open(t, group), group, "a"), Elect(t, h.open(t, group), group, "b")
	term := Campaign(t, a)
	if term.Err() != nil || term.Fence().Token == 0 || term.Fence().Owner == "" || term.Leader().Name != "a" {
		t.Errorf("term %+v, %v", term.Leader(), term.Err())
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.Campaign(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Campaign alongside a leader = %v", err)
	}
	work, stop := term.Context(t.Context())
	defer stop()
	resign(t, term)
	for l, err := range b.Observe(t.Context()) {
		if err == nil && l.Equal(term.Leader()) {
			t.Errorf("after Resign %+v leads", l)
		}
		break
	}
	if <-work.Done(); !errors.Is(context.Cause(work), dlock.ErrReleased) || !errors.Is(term.Err(), dlock.ErrReleased) {
		t.Errorf("after Resign: %v, %v", context.Cause(work), term.Err())
	}
	if err := term.Resign(t.Context()); !errors.Is(err, dlock.ErrReleased) {
		t.Errorf("Resign again = %v", err)
	}
}

func resignHandsOn(t testing.TB, h Harness, group string) {
	a, b := Elect(t, h.open(t, group), group, "a"), Elect(t, h.open(t, group), group, "b")
	last := dlock.Fence{}
	candidates := []cluster.Election{a, b}
	term := Campaign(t, a)
	for k := range 6 {
		if f := term.Fence(); f.Token <= last.Token || f.Owner == last.Owner {
			testbedtest.Final(t, "term %+v follows %+v", f, last)
			t.FailNow()
		}
		last = term.Fence()
		var campaigning sync.WaitGroup
		var next *cluster.Term
		campaigning.Go(func() { next = await(t, candidates[(k+1)%2]) })
		pass(t, 20*time.Millisecond) // it waits by now, or will find the place free
		start := time.Now()
		resign(t, term)
		campaigning.Wait()
		t.Logf("elected %v after the resignation began", time.Since(start))
		if term = next; term == nil {
			t.Fatal("nobody is elected")
		}
	}
	resign(t, term)
}

func electedInOrder(t testing.TB, h Harness, group string) {
	if h.Waiting == nil {
		t.Skip("candidates are not elected in order")
	}
	const n = 6
	waiting := h.Waiting(t, group)
	term := Campaign(t, Elect(t, h.open(t, group), group, "first"))
	var (
		wg    sync.WaitGroup
		order []int // guarded by the election under test
	)
	for k := range n {
		e := Elect(t, h.open(t, group), group, "later")
		wg.Go(func() {
			if term := await(t, e); term != nil {
				order = append(order, k)
				resign(t, term)
			}
		})
		Wait(t, "candidate", func() bool { return waiting() == k+1 })
	}
	resign(t, term)
	wg.Wait()
	for k, got := range order {
		if k != got {
			t.Fatalf("elected in the order %v", order)
		}
	}
}

func cancelledCampaignLeavesNothing(t testing.TB, h Harness, group string) {
	a, b, c := Elect(t, h.open(t, group), group, "a"), Elect(t, h.open(t, group), group, "b"), Elect(t, h.open(t, group), group, "c")
	term := Campaign(t, a)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	given := make(chan error, 1)
	var campaigning sync.WaitGroup
	campaigning.Go(func() {
		_, err := b.Campaign(ctx)
		given <- err
	})
	pass(t, 200*time.Millisecond)
	cancel(reason)
	select {
	case err := <-given:
		if !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
			t.Errorf("Campaign = %v", err)
		}
	case <-time.After(maxWait):
		t.Fatal("Campaign does not end with its context")
	}
	campaigning.Wait()
	resign(t, term)
	start := time.Now()
	Campaign(t, c)
	t.Logf("elected %v after a candidate has left", time.Since(start))
}

// Leads reports whether an announcement is right and that of a term.
func Leads(want cluster.Leader) func(cluster.Leader, error) bool {
	return func(l cluster.Leader, err error) bool { return err == nil && l.Equal(want) }
}

func observeTells(t testing.TB, h Harness, group string) {
	here, there := h.open(t, group), h.open(t, group)
	a, b := Elect(t, here, group, "a"), Elect(t, there, group, "b;ö/ 1")
	seen := Follow(t, Elect(t, there, group, "observer").Observe)
	seen.Until(t, "nobody", Leads(cluster.Leader{}))
	var began, ended []time.Duration
	for _, e := range []cluster.Election{a, b, a} {
		term := Campaign(t, e)
		began = append(began, seen.Until(t, "the leader", Leads(term.Leader())))
		late := Follow(t, e.Observe)
		late.Until(t, "the leader", Leads(term.Leader()))
		if l, _, _ := late.Now(); !l.Elected() || !l.Since.Equal(term.Leader().Since) {
			t.Errorf("leader %+v, want %+v", l, term.Leader())
		}
		resign(t, term)
		ended = append(ended, seen.Until(t, "nobody", Leads(cluster.Leader{})))
	}
	h.promptly(t, "a leader", began)
	h.promptly(t, "its end", ended)
}

func observerIsStale(t testing.TB, h Harness, group string) {
	far, link := h.behind(t, group)
	a := Elect(t, h.open(t, group), group, "a")
	term := Campaign(t, a)
	seen := Follow(t, Elect(t, far, group, "observer").Observe)
	seen.Until(t, "the leader", Leads(term.Leader()))
	link.Cut()
	d := seen.Until(t, "that it is stale", func(l cluster.Leader, err error) bool {
		return errors.Is(err, cluster.ErrStale) && l.Equal(term.Leader())
	})
	t.Logf("stale is said after %v, the TTL being %v", d, h.TTL)
	resign(t, term)
	link.Heal()
	seen.Until(t, "nobody", Leads(cluster.Leader{}))
}
