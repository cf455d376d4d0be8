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

// Claim is the answer of an index to a consumer.
type Claim struct {
	Timers []Hint    // those that are due, which the index has no more
	Now    time.Time // by the clock of the index
	Next   time.Time // when the next one is due that is not in Timers; zero if there is none
	Wiped  bool      // the index has lost what it was told, or was never told
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
	// leaves those that are there as they are; otherwise they get the new moment.
	// Concurrent calls share round trips.
	Schedule(ctx context.Context, kind, lane string, missing bool, hints []Hint) (int, error)

	// Remove forgets hints.
	Remove(ctx context.Context, kind, lane string, ids []string) error

	// Claim removes at most limit timers that are due, the earliest first, and returns them.
	// One claim gets a hint, and never before its moment by the clock of the index. If the answer
	// is lost, or the consumer dies, the overdue scan of the store finds the timers.
	Claim(ctx context.Context, s Shard, limit int) (Claim, error)

	// Wake returns a channel that gets moments which became the earliest of the
	// shard, by this process or others. It is a help for delays shorter than the poll, and
	// may lose any of them. It may be nil.
	Wake(s Shard) <-chan time.Time

	// Complete says that the index has been told everything: Claim reports Wiped
	// no more, until the next loss.
	Complete(ctx context.Context, kind, lane string) error

	// Drop deletes all that the index has of a kind and lane. If a consumer claims there
	// later, Claim reports Wiped.
	Drop(ctx context.Context, kind, lane string) error

	// Pending returns how many hints of a kind and lane there are.
	Pending(ctx context.Context, kind, lane string) (int, error)

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
