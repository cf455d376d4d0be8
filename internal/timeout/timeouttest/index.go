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
	// Clients returns n clients of one index, each as in another process, or n times the same one if the index is in
	// the process.
	Clients func(t *testing.T, n int) []timeout.Index

	// Now returns the time by the clock of the index, which it asks without the index.
	// Nil: it is that of the process.
	Now func(t *testing.T, x timeout.Index) time.Time

	// Wipe makes the index forget all it knows of a kind and partition. Nil: it cannot forget.
	Wipe func(t *testing.T, x timeout.Index, kind, partition string)

	// Elapse makes keys expire that have to live no longer than d. Nil: time does.
	Elapse func(d time.Duration)

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
		{"OneClaimGetsAHint", oneClaimGetsAHint},
		{"ClaimedIsGone", claimedIsGone},
		{"EarlierMomentIsKept", earlierMomentIsKept},
		{"CallersShareAnIndex", callersShareAnIndex},
		{"ManyAtOnce", manyAtOnce},
		{"OnePassInEachInterval", onePassInEachInterval},
		{"WipedIndexGrantsAPass", wipedIndexGrantsAPass},
		{"KindsAndPartitionsAreApart", kindsAndPartitionsAreApart},
		{"ShardsStay", shardsStay},
		{"IDsAreText", idsAreText},
		{"WakeTellsTheHead", wakeTellsTheHead},
	}
}

// RunIndex runs the conformance tests.
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
	partition = "base"
	patient   = time.Minute          // what a case waits for comes by then
	pause     = 5 * time.Millisecond // between two looks
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
	var entries []timeout.Entry
	for _, id := range ids {
		entries = append(entries, timeout.Entry{ID: id, At: at})
	}
	if err := b.Schedule(b.ctx, b.kind, partition, entries); err != nil {
		b.t.Fatalf("Schedule = %v", err)
	}
}

// claimed is a timer with the shard that it came from.
type claimed struct {
	timeout.Entry
	shard timeout.Shard
}

// ask claims from one shard.
func (b bench) ask(s timeout.Shard, limit int) timeout.Claim {
	b.t.Helper()
	c, err := b.Claim(b.ctx, s, limit)
	if err != nil {
		b.t.Fatalf("Claim = %v", err)
	}
	return c
}

// claim looks once into every shard.
func (b bench) claim(limit int) (all []claimed) {
	b.t.Helper()
	for _, s := range b.Shards(b.kind, partition) {
		c := b.ask(s, limit)
		for _, timer := range c.Timers {
			if timer.At.After(c.Now) {
				b.t.Errorf("%s, due at %v, is claimed at %v", timer.ID, timer.At, c.Now)
			}
			all = append(all, claimed{timer, s})
		}
	}
	return all
}

// await claims until it has n timers.
func (b bench) await(n int) (all []claimed) {
	b.t.Helper()
	for end := time.Now().Add(patient); ; {
		all = append(all, b.claim(100)...)
		if len(all) >= n {
			break
		}
		if time.Now().After(end) {
			b.t.Fatalf("%d timers are claimed after %v, want %d: %v", len(all), patient, n, names(all))
		}
		time.Sleep(pause)
	}
	if len(all) > n {
		b.t.Fatalf("%d timers are claimed, want %d: %v", len(all), n, names(all))
	}
	return all
}

// now is the time of the index.
func (b bench) now() time.Time {
	b.t.Helper()
	return b.ask(b.Shards(b.kind, partition)[0], 0).Now
}

// next returns the moments that the shards announce.
func (b bench) next() (all []time.Time) {
	b.t.Helper()
	for _, s := range b.Shards(b.kind, partition) {
		if c := b.ask(s, 0); !c.Next.IsZero() {
			all = append(all, c.Next)
		}
	}
	return all
}

// holds checks how many entries there are.
func (b bench) holds(pending int) {
	b.t.Helper()
	if n, err := b.Pending(b.ctx, b.kind, partition); err != nil || n != pending {
		b.t.Errorf("Pending = %d, %v; want %d", n, err, pending)
	}
}

func names(claims []claimed) (ids []string) {
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
