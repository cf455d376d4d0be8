package timeout

import (
	"context"
	"time"
)

// Shard is one part of an index. Each kind and partition has shards of its own, so that no instance
// claims a timer that it cannot handle.
type Shard struct {
	Kind, Partition string
	N               int
}

// Entry is a timer as an index has it. At has whole milliseconds.
type Entry struct {
	ID string
	At time.Time
}

// Claim is the reply of an index to a consumer.
type Claim struct {
	Timers []Entry   // those that are due; the index has removed them
	Now    time.Time // by the clock of the index
	Next   time.Time // when the next one is due that is not in Timers; zero if there is none
	Wiped  bool      // the index has lost entries, or is not complete yet
}

// Index finds timers that are due. It is a copy that may be lost, late or wrong at
// any time. The rows of the [Store] are the truth, and the reconciler repairs the index from them.
//
// All methods but Wake block until the index has answered, or ctx ends. After an error
// a call may have had its effect.
type Index interface {
	// Shards returns the shards of a kind and partition. They never change.
	Shards(kind, partition string) []Shard

	// Schedule puts entries, and returns how many of them were new. An entry that is there gets
	// the new moment, or with missing keeps its own.
	Schedule(ctx context.Context, kind, partition string, missing bool, entries []Entry) (int, error)

	// Remove removes entries.
	Remove(ctx context.Context, kind, partition string, ids []string) error

	// Claim removes at most limit entries that are due by the clock of the index, the earliest first, and
	// returns them. One claim gets an entry. If the reply is lost, or the consumer dies, the
	// overdue scan finds the timers.
	Claim(ctx context.Context, s Shard, limit int) (Claim, error)

	// Wake returns a channel that receives moments that became the earliest of the shard, by this
	// process or another. It shortens the wait for timers that are due before the next poll. It may lose
	// any message, and may be nil.
	Wake(s Shard) <-chan time.Time

	// Complete marks the index as complete: Claim does not report Wiped until the next loss.
	Complete(ctx context.Context, kind, partition string) error

	// Drop removes all entries of a kind and partition. The next Claim there reports Wiped.
	Drop(ctx context.Context, kind, partition string) error

	// Pending returns how many entries of a kind and partition there are.
	Pending(ctx context.Context, kind, partition string) (int, error)

	// Run receives messages for Wake until ctx ends.
	Run(ctx context.Context) error
}

// Local is implemented by an index in memory. With it each instance fires what it has scheduled
// itself, and puts no entry that it does not handle. Only a new leader puts entries for timers of
// other instances, when it rebuilds its index. Later its overdue scan fires those that an instance left behind.
type Local interface {
	Local() bool
}
