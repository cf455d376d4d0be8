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
}

// Index finds timers that are due, among those of the next minute. It is a copy that may be lost, late or wrong at
// any time. The rows of the [Store] are the truth, and look-ahead passes write the index from them.
//
// All methods but Wake block until the index has answered, or ctx ends. After an error
// a call may have had its effect.
type Index interface {
	// Shards returns the shards of a kind and partition. They never change.
	Shards(kind, partition string) []Shard

	// Schedule puts entries. An entry that is there keeps the earlier of the two moments: a claim that is too early
	// corrects the entry, and nothing would notice one that is too late.
	Schedule(ctx context.Context, kind, partition string, entries []Entry) error

	// Claim removes at most limit entries that are due by the clock of the index, the earliest first, and
	// returns them. One claim gets an entry. If the reply is lost, or the consumer dies, the
	// overdue scan finds the timers.
	Claim(ctx context.Context, s Shard, limit int) (Claim, error)

	// Wake returns a channel that receives moments that became the earliest of the shard, by this
	// process or another. It shortens the wait for timers that are due before the next poll. It may lose
	// any message, and may be nil.
	Wake(s Shard) <-chan time.Time

	// GrantPass grants a look-ahead pass to one caller in each interval. It saves work, and no more: an index that
	// has lost its data grants a pass at once, and two passes at a time do no harm.
	GrantPass(ctx context.Context, kind, partition string, every time.Duration) (bool, error)

	// Pending returns how many entries of a kind and partition there are.
	Pending(ctx context.Context, kind, partition string) (int, error)

	// Run receives messages for Wake until ctx ends.
	Run(ctx context.Context) error
}

// Local is implemented by an index in memory. With it each instance makes its own passes, and puts no entry that it does
// not handle. Instances that share a database claim each timer several times then, and the rows decide.
type Local interface {
	Local() bool
}
