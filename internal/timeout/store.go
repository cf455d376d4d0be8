package timeout

import (
	"context"
	"time"
)

// Filter chooses stored timers. Zero fields choose all.
type Filter struct {
	Kind  string
	State State
	After Row       // the last row of the page before: its Next, Kind and ID; none without ID
	Until time.Time // the last Next that is chosen
	Limit int       // 0 means 100, at most 5,000

	// Brief asks for no more than Kind, ID, Partition, State and Next of a row,
	// which a store may find in an index. The other fields are undefined.
	Brief bool
}

// Later is a timer that has failed.
type Later struct {
	ID      string
	Due     time.Time // as it was handled
	At      time.Time
	Attempt int // attempts that the row counts from now on
	Error   string
}

// Store keeps timers in a database. It is the source of truth: a timer is scheduled if and only if its
// row is committed, and no index can lose it.
//
// If tx is nil, the method runs a transaction of its own.
type Store interface {
	// Now returns the time by the database's clock.
	Now(ctx context.Context) (time.Time, error)

	// Insert stores timers. A timer that is stored already gets the new due time, and
	// is open again with no attempts, so that scheduling can be repeated. Of several timers with one kind and id the last one counts.
	Insert(ctx context.Context, tx Tx, partition, trace string, timers []Timer) error

	// Delete deletes timers, open or dead, and returns how many there were. If due is not nil, it has a time for each
	// of the ids, which are unique. A timer that is due later than its time stays.
	Delete(ctx context.Context, tx Tx, kind string, ids []string, due []time.Time) (int, error)

	// Move gives a timer another due time and no attempts, or fails with
	// ErrNotFound. A dead timer is open again. It returns the changed row.
	Move(ctx context.Context, tx Tx, kind, id string, due time.Time) (Row, error)

	// Load returns those of the timers that are stored, open or dead, in any order,
	// and the time by the database's clock.
	Load(ctx context.Context, kind string, ids []string) ([]Row, time.Time, error)

	// Delay records failures: when to try again, and the attempts so far. MarkDead records that there
	// will be no further attempt. Neither changes a timer that is due later than it was when it was
	// handled: it has been moved meanwhile.
	Delay(ctx context.Context, kind string, later []Later) error
	MarkDead(ctx context.Context, kind string, later []Later) error

	// ClaimOverdue claims open timers of the kind and the partition whose Next is before a moment,
	// the earliest first. It sets their Next to until and counts the attempt in the row. It returns the
	// rows with that attempt and with their previous Next. It skips rows that another transaction has locked.
	ClaimOverdue(ctx context.Context, kind, partition string, before, until time.Time, limit int) ([]Row, error)

	// List returns timers in the order of Next, Kind and ID.
	List(ctx context.Context, f Filter) ([]Row, error)

	// Count returns how many timers there are, by kind, partition and state.
	Count(ctx context.Context) (map[Shard]map[State]int, error)

	// Redrive makes those of the timers that are dead open again, due now and with no
	// attempts, and returns them.
	Redrive(ctx context.Context, kind string, ids []string) ([]Row, error)

	// SetPaused pauses a kind, or ends the pause. Paused returns the kinds that are paused.
	SetPaused(ctx context.Context, kind string, paused bool) error
	Paused(ctx context.Context) ([]string, error)

	// Heartbeat records that instance consumes the partition. Reassign moves open timers into [Base] from
	// partitions without a heartbeat for the given time, and returns how many it moved.
	Heartbeat(ctx context.Context, partition, instance string) error
	Reassign(ctx context.Context, silent time.Duration, limit int) (int, error)
}
