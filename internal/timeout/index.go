package timeout

import (
	"context"
	"time"
)

// Shard is one part of an index. Timers of other kinds, or in other lanes, are in
// other shards, so that nobody claims what it cannot handle.
type Shard struct {
	Kind, Lane string
	N          int
}

// Hint tells an index when to wake somebody for a timer. At has whole milliseconds.
type Hint struct {
	ID string
	At time.Time
}

// Claimed is a timer that an index has lent to a consumer. Token and Attempt are part
// of it: what another consumer was lent later is another Claimed.
type Claimed struct {
	ID      string
	Due     time.Time // as the index had it
	Token   uint64    // grows from claim to claim of a shard
	Attempt int       // 1, and one more each time that a lease has ended without an answer
}

// Claim is the answer of an index to a consumer.
type Claim struct {
	Timers []Claimed
	Now    time.Time // by the clock of the index
	Next   time.Time // when the next one is due that is not in Timers; zero if there is none
	Wiped  bool      // the index has lost what it was told, or was never told
}

// IndexStats is what is in the shards of a kind and lane.
type IndexStats struct {
	Pending, Leased int
	Oldest          time.Time // the earliest moment of all pending; zero if there are none
}

// Index knows which timers are due. It is a copy that may be lost, late or wrong at
// any time: the rows of the [Store] are the truth, and the index is repaired from them.
//
// All methods but Wake block until the index has answered, or ctx ends. After an error
// a call may have had its effect.
type Index interface {
	// Shards returns the shards of a kind and lane; always the same ones.
	Shards(kind, lane string) []Shard

	// Schedule puts hints, and returns how many of them were new to it. With missing it
	// leaves those that are pending as they are, and those that are lent if it can tell
	// cheaply; otherwise a pending hint gets the new moment. Concurrent calls share round trips.
	Schedule(ctx context.Context, kind, lane string, missing bool, hints []Hint) (int, error)

	// Remove forgets pending hints; lent ones stay with who has them.
	Remove(ctx context.Context, kind, lane string, ids []string) error

	// Claim lends at most limit timers that are due, for the time of lease: first
	// those whose lease has ended without an answer, then pending ones, the earliest
	// first. It never lends one before its moment by the clock of the index.
	Claim(ctx context.Context, s Shard, limit int, lease time.Duration) (Claim, error)

	// Ack ends claims whose timers are worked off, and returns how many of them were
	// still the caller's.
	Ack(ctx context.Context, s Shard, claimed []Claimed) (int, error)

	// Return gives claims back, each to be due at a moment of its own, and returns how
	// many of them were still the caller's. The slices have the same length. A hint
	// that is pending for the same timer is newer, and stays as it is.
	Return(ctx context.Context, s Shard, claimed []Claimed, due []time.Time) (int, error)

	// Extend lets claims end only after the time of lease from now, and returns how
	// many of them were still the caller's.
	Extend(ctx context.Context, s Shard, claimed []Claimed, lease time.Duration) (int, error)

	// Wake returns a channel that gets moments which became the earliest of the
	// shard. It is a help for delays shorter than the poll, and may lose any of them.
	// It may be nil.
	Wake(s Shard) <-chan time.Time

	// Complete says that the index has been told everything: Claim reports Wiped
	// no more, until the next loss.
	Complete(ctx context.Context, kind, lane string) error

	// Drop deletes all that the index has of a kind and lane. If a consumer claims there
	// later, Claim reports Wiped.
	Drop(ctx context.Context, kind, lane string) error

	// Stats counts.
	Stats(ctx context.Context, kind, lane string) (IndexStats, error)

	// Run does what the index does in the background, until ctx ends.
	Run(ctx context.Context) error
}

// Local is implemented by an index that only its own process can see. Then each
// instance fires what it has scheduled itself, and hints nothing that it does not
// handle. The leader does not hint what others have scheduled, and its sweep takes what
// they left behind.
type Local interface {
	Local() bool
}
