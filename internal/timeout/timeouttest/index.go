package timeouttest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/shop/internal/timeout"
)

// IndexHarness describes one backend of [timeout.Index].
type IndexHarness struct {
	// Clients returns n clients of one index, each as another process would have
	// it, or the same one n times if the index is in the process.
	Clients func(t *testing.T, n int) []timeout.Index

	// Now returns the time by the clock of the index, which it asks without the index.
	// Nil: it is that of the process.
	Now func(t *testing.T, x timeout.Index) time.Time

	// Wipe makes the index forget all it knows of a kind and lane. Nil: it cannot forget.
	Wipe func(t *testing.T, x timeout.Index, kind, lane string)

	// RoundTrips returns how many round trips a client has made so far. Nil: there are none.
	RoundTrips func(t *testing.T, x timeout.Index) int

	// Bubble runs a case on fake time, as synctest.Test does. Nil: on real time.
	Bubble func(t *testing.T, f func(t *testing.T))
}

type indexCase struct {
	name string
	fn   func(t *testing.T, h IndexHarness)
}

func indexCases() []indexCase {
	return []indexCase{
		{"NeverEarly", neverEarly},
		{"PastIsDueAtOnce", pastIsDueAtOnce},
		{"EarliestFirst", earliestFirst},
		{"LimitIsKept", limitIsKept},
		{"HeadIsReported", headIsReported},
		{"ClaimLendsOnce", claimLendsOnce},
		{"ClaimHasAnIDOnce", claimHasAnIDOnce},
		{"ReclaimCountsTheAttempt", reclaimCountsTheAttempt},
		{"ReclaimedComeFirst", reclaimedComeFirst},
		{"ExtendKeepsTheClaim", extendKeepsTheClaim},
		{"AckEndsTheClaim", ackEndsTheClaim},
		{"StaleAckRemovesNothing", staleAckRemovesNothing},
		{"ReturnIsDueAgain", returnIsDueAgain},
		{"ReturnLeavesANewerHint", returnLeavesANewerHint},
		{"ScheduleMoves", scheduleMoves},
		{"MissingLeavesWhatIsThere", missingLeavesWhatIsThere},
		{"RemoveLeavesTheLent", removeLeavesTheLent},
		{"EveryCallerGetsItsAnswer", everyCallerGetsItsAnswer},
		{"ScheduleSharesRoundTrips", scheduleSharesRoundTrips},
		{"ManyAtOnce", manyAtOnce},
		{"NeverToldIsWiped", neverToldIsWiped},
		{"WipeIsNoticed", wipeIsNoticed},
		{"CompleteEndsWiped", completeEndsWiped},
		{"DropIsAWipeOfOneLane", dropIsAWipe},
		{"FencesGrow", fencesGrow},
		{"KindsAndLanesAreApart", kindsAndLanesAreApart},
		{"ShardsStay", shardsStay},
		{"IDsAreText", idsAreText},
		{"WakeTellsTheHead", wakeTellsTheHead},
	}
}

// RunIndex runs the suite.
func RunIndex(t *testing.T, h IndexHarness) {
	t.Helper()
	for _, c := range indexCases() {
		t.Run(c.name, func(t *testing.T) {
			if h.Bubble != nil {
				h.Bubble(t, func(t *testing.T) { c.fn(t, h) })
				return
			}
			t.Parallel()
			c.fn(t, h)
		})
	}
}

const (
	lane    = "base"
	long    = time.Hour              // a lease that does not end during a case
	short   = 200 * time.Millisecond // a lease whose end a case awaits
	patient = time.Minute            // what a case waits for comes by then
	pause   = 5 * time.Millisecond   // between two looks
)

// bench is a kind of its own on an index, with helpers that fail the test.
type bench struct {
	timeout.Index
	t    *testing.T
	ctx  context.Context //nolint:containedctx // It bounds the case, and all calls of it.
	kind string
}

// benches returns one kind as n clients see it.
func benches(t *testing.T, h IndexHarness, n int) []bench {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patient)
	t.Cleanup(cancel)
	kind, out := rand.Text(), make([]bench, 0, n)
	for _, x := range h.Clients(t, n) {
		out = append(out, bench{Index: x, t: t, ctx: ctx, kind: kind})
	}
	return out
}

func newBench(t *testing.T, h IndexHarness) bench { return benches(t, h, 1)[0] }

// put schedules ids for one moment.
func (b bench) put(at time.Time, ids ...string) {
	b.t.Helper()
	var hints []timeout.Hint
	for _, id := range ids {
		hints = append(hints, timeout.Hint{ID: id, At: at})
	}
	if _, err := b.Schedule(b.ctx, b.kind, lane, false, hints); err != nil {
		b.t.Fatalf("Schedule = %v", err)
	}
}

// lent is a claim with the shard that it came from.
type lent struct {
	timeout.Claimed
	shard timeout.Shard
	now   time.Time // of the claim
}

// claim looks once into every shard.
func (b bench) claim(limit int, lease time.Duration) (all []lent) {
	b.t.Helper()
	for _, s := range b.Shards(b.kind, lane) {
		c, err := b.Claim(b.ctx, s, limit, lease)
		if err != nil {
			b.t.Fatalf("Claim = %v", err)
		}
		for _, timer := range c.Timers {
			if timer.Due.After(c.Now) {
				b.t.Errorf("%s, due at %v, is lent at %v", timer.ID, timer.Due, c.Now)
			}
			all = append(all, lent{timer, s, c.Now})
		}
	}
	return all
}

// await claims until it has n timers.
func (b bench) await(n int, lease time.Duration) (all []lent) {
	b.t.Helper()
	for end := time.Now().Add(patient); ; {
		all = append(all, b.claim(100, lease)...)
		if len(all) >= n {
			break
		}
		if time.Now().After(end) {
			b.t.Fatalf("%d timers are lent after %v, want %d: %v", len(all), patient, n, names(all))
		}
		time.Sleep(pause)
	}
	if len(all) > n {
		b.t.Fatalf("%d timers are lent, want %d: %v", len(all), n, names(all))
	}
	return all
}

// now is the time of the index.
func (b bench) now() time.Time {
	b.t.Helper()
	c, err := b.Claim(b.ctx, b.Shards(b.kind, lane)[0], 0, long)
	if err != nil {
		b.t.Fatalf("Claim = %v", err)
	}
	return c.Now
}

// each calls f for the claims of every shard, and adds up what it returns.
func (b bench) each(claims []lent, f func(s timeout.Shard, c []timeout.Claimed) (int, error)) (sum int) {
	b.t.Helper()
	by := map[timeout.Shard][]timeout.Claimed{}
	for _, c := range claims {
		by[c.shard] = append(by[c.shard], c.Claimed)
	}
	for s, c := range by {
		n, err := f(s, c)
		if err != nil {
			b.t.Fatal(err)
		}
		sum += n
	}
	return sum
}

func (b bench) ack(claims []lent) int {
	b.t.Helper()
	return b.each(claims, func(s timeout.Shard, c []timeout.Claimed) (int, error) { return b.Ack(b.ctx, s, c) })
}

func (b bench) extend(claims []lent, lease time.Duration) int {
	b.t.Helper()
	return b.each(claims, func(s timeout.Shard, c []timeout.Claimed) (int, error) { return b.Extend(b.ctx, s, c, lease) })
}

// giveBack returns claims, all for one moment.
func (b bench) giveBack(claims []lent, at time.Time) int {
	b.t.Helper()
	return b.each(claims, func(s timeout.Shard, c []timeout.Claimed) (int, error) {
		return b.Return(b.ctx, s, c, slices.Repeat([]time.Time{at}, len(c)))
	})
}

// holds checks how many timers there are.
func (b bench) holds(pending, leased int) {
	b.t.Helper()
	s, err := b.Stats(b.ctx, b.kind, lane)
	if err != nil {
		b.t.Fatalf("Stats = %v", err)
	}
	if s.Pending != pending || s.Leased != leased {
		b.t.Errorf("%d timers are pending and %d lent, want %d and %d", s.Pending, s.Leased, pending, leased)
	}
}

func names(claims []lent) (ids []string) {
	for _, c := range claims {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}

func series(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("id-%05d", i))
	}
	return ids
}
